// What a code object's ELF says about its kernels: descriptors and the "AMDGPU" metadata note.
// LLVM AMDGPUUsage, "Code Object Metadata" and "Kernel Descriptor".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace kerncap::interpose {

struct KernelMetadata {
  bool has_descriptor = false;
  std::array<unsigned char, 64> descriptor{};
  bool has_language = false;  // `.language`, or a HIP unit's symbol: written by clang, not by Triton
  std::uint32_t sgpr_count = 0;
  std::uint32_t kernarg_bytes = 0;
  // Offsets in the kernarg segment; -1: the kernel has no such argument.
  std::int32_t hostcall_offset = -1;
  std::int32_t multigrid_offset = -1;
};

struct CodeMetadata {
  std::unordered_map<std::string, KernelMetadata> kernels;  // by symbol without ".kd"
};

// Never fails: what cannot be read is left out.
CodeMetadata read_code_metadata(const void* elf, std::size_t bytes);

// Size of the ELF image at `elf` as its headers tell it, at most `limit`.
std::size_t elf_image_bytes(const void* elf, std::size_t limit);

struct Registers {
  std::uint32_t vgprs = 0;  // a work-item, as allocated, AGPRs included on targets with one file
  std::uint32_t sgprs = 0;
  std::uint32_t lds_bytes = 0;
  std::uint32_t scratch_bytes = 0;
};

// `target` is the agent's name, "gfx942".
Registers kernel_registers(const KernelMetadata& kernel, const std::string& target);

}  // namespace kerncap::interpose
