// What a cubin, NVIDIA's ELF file, says of itself: its kernels and its variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kerncap::interpose::cuda {

struct CubinVariable {
  std::string name;
  std::uint64_t bytes = 0;
  bool constant = false;  // in a constant bank
};

struct Cubin {
  std::vector<std::string> kernels;  // sorted; mangled
  std::vector<CubinVariable> variables;
};

// Empty lists where it is no 64-bit ELF file, or one that is cut short. Never reads beyond `bytes`.
Cubin read_cubin(const void* data, std::size_t bytes);

}  // namespace kerncap::interpose::cuda
