// One kernel-dispatch packet, taken apart and checked (HSA AQL; LLVM AMDGPUUsage, "Kernel Descriptor").
#pragma once

#include <optional>

#include "sim/device/gpu.h"

namespace kerncap::sim {

struct KernelDescriptor {
  std::uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  std::uint16_t properties = 0;
  std::uint64_t entry = 0;        // virtual address
  std::uint64_t start = 0;        // where waves start: behind the prologue where arguments are preloaded
  unsigned preloaded = 0;         // user SGPRs that hold kernel arguments (dwords)
  std::uint32_t arguments[16]{};  // those

  [[nodiscard]] unsigned vgprs() const {
    return ((rsrc1 & 0x3Fu) + 1) * 8;
  }  // ArchVGPRs and AccVGPRs together
  [[nodiscard]] unsigned accum_offset() const { return ((rsrc3 & 0x3Fu) + 1) * 4; }
  [[nodiscard]] unsigned user_sgprs() const { return rsrc2 >> 1 & 0x1Fu; }
  // The MODE register that waves start with.
  [[nodiscard]] std::uint32_t mode() const {
    return (rsrc1 >> 12 & 0xFFu) | (rsrc1 >> 21 & 1u) << 8 | (rsrc1 >> 23 & 1u) << 9;
  }
};

struct DispatchInfo {
  Arch arch = Arch::gfx942;
  KernelDescriptor kernel;
  std::uint32_t workgroup_size[3] = {1, 1, 1};
  std::uint32_t grid[3] = {1, 1, 1};    // work-items
  std::uint32_t groups[3] = {1, 1, 1};  // workgroups
  std::uint32_t private_bytes = 0;      // a work-item
  std::uint32_t lds_bytes = 0;          // a workgroup
  std::uint64_t kernarg = 0;
  std::uint64_t packet_address = 0, queue_address = 0, dispatch_id = 0;

  [[nodiscard]] std::uint64_t workgroups() const {
    return static_cast<std::uint64_t>(groups[0]) * groups[1] * groups[2];
  }
  [[nodiscard]] unsigned full_waves() const {
    return (workgroup_size[0] * workgroup_size[1] * workgroup_size[2] + 63) / 64;
  }
};

// What is wrong with the packet is returned as a sentence.
std::optional<std::string> parse_dispatch(const void* packet, const AddressSpace& memory, DispatchInfo* info);

}  // namespace kerncap::sim
