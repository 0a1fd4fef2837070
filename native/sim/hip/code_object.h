// What the library must know of a code object before the HSA loader gets it: which part of a bundle is the
// device's, how long it is, and how each kernel's arguments lie.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kerncap::sim::hip {

struct KernelArgument {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  std::string kind;  // .value_kind: "by_value", "global_buffer", "hidden_block_count_x" ...

  [[nodiscard]] bool hidden() const { return kind.starts_with("hidden_"); }
};

struct KernelLayout {
  std::string descriptor;  // symbol of the kernel descriptor, "name.kd"
  std::uint32_t kernarg_bytes = 0;
  std::uint32_t max_block = 0;  // work-items of a workgroup; 0: not stated
  std::vector<KernelArgument> arguments;
};

// Bytes that begin at `image`, whose length nobody gives: an ELF code object, or a clang offload bundle of
// which the entry for `arch` ("gfx942") is taken. Null data if there is none.
std::string_view find_code_object(const void* image, const std::string& arch);
// The same for bytes of known length, such as a file.
std::string_view find_code_object(std::string_view image, const std::string& arch);

// Kernels by name, from the AMDGPU metadata note (LLVM AMDGPUUsage, "Code Object Metadata", V3 and later);
// nullopt if the ELF or its note cannot be read.
std::optional<std::map<std::string, KernelLayout>> read_kernels(std::string_view code_object);

}  // namespace kerncap::sim::hip
