// The devices that are simulated, as their runtime describes them to programs.
#pragma once

#include <cstdint>

#include "sim/device/gpu.h"

namespace kerncap::sim::rt {

// Signals hold timestamps in ticks of the agent's clock; the runtime's own functions speak nanoseconds, as
// the kernel driver's system clock does.
inline constexpr std::uint64_t kAgentClockHz = 100'000'000;
inline constexpr std::uint64_t kSystemClockHz = 1'000'000'000;
inline constexpr std::uint64_t kNanosecondsPerTick = kSystemClockHz / kAgentClockHz;

struct DeviceModel {
  const char* name;                   // gfx942
  const char* isa;                    // amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-
  const char* product;                // marketing name; says that it is simulated
  std::uint32_t elf_machine;          // EF_AMDGPU_MACH in e_flags
  std::uint32_t elf_generic_machine;  // of the generic target that runs on it too; 0: none
  std::uint32_t chip_id;
  std::uint32_t asic_family;
  std::uint32_t compute_units;
  std::uint32_t simds_per_cu;
  std::uint32_t waves_per_cu;
  std::uint32_t wavefront_size;
  std::uint32_t shader_engines;
  std::uint32_t xccs;
  std::uint32_t clock_mhz;
  std::uint32_t memory_clock_mhz;
  std::uint32_t memory_width_bits;
  std::uint64_t memory_bytes;
  std::uint32_t lds_bytes;
  std::uint32_t cache_bytes[4];  // L1, L2, L3, L4
  std::uint32_t cacheline_bytes;
};

const DeviceModel& device_model(Arch arch);
// The one with this EF_AMDGPU_MACH; nullptr: none that is known.
const DeviceModel* model_of_machine(std::uint32_t machine);

}  // namespace kerncap::sim::rt
