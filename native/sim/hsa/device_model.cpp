#include "sim/hsa/device_model.h"

namespace kerncap::sim::rt {
namespace {

constexpr std::uint64_t kGiB = 1ull << 30;
constexpr std::uint32_t kMiB = 1u << 20;

// EF_AMDGPU_MACH: LLVM AMDGPUUsage, "AMDGPU ELF Header e_flags".
constexpr DeviceModel kGfx90a{
    .name = "gfx90a",
    .isa = "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
    .product = "AMD Instinct MI250X (simulated)",
    .elf_machine = 0x03f,
    .elf_generic_machine = 0,
    .chip_id = 0x7408,
    .asic_family = 0x8d,
    .compute_units = 110,
    .simds_per_cu = 4,
    .waves_per_cu = 32,
    .wavefront_size = 64,
    .shader_engines = 8,
    .xccs = 1,
    .clock_mhz = 1700,
    .memory_clock_mhz = 1600,
    .memory_width_bits = 4096,
    .memory_bytes = 64 * kGiB,
    .lds_bytes = 64 << 10,
    .cache_bytes = {16 << 10, 8 * kMiB, 0, 0},
    .cacheline_bytes = 128,
};

constexpr DeviceModel kGfx942{
    .name = "gfx942",
    .isa = "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-",
    .product = "AMD Instinct MI300X (simulated)",
    .elf_machine = 0x04c,
    .elf_generic_machine = 0x05f,
    .chip_id = 0x74a1,
    .asic_family = 0x8d,
    .compute_units = 304,
    .simds_per_cu = 4,
    .waves_per_cu = 32,
    .wavefront_size = 64,
    .shader_engines = 32,
    .xccs = 8,
    .clock_mhz = 2100,
    .memory_clock_mhz = 1300,
    .memory_width_bits = 8192,
    .memory_bytes = 192 * kGiB,
    .lds_bytes = 64 << 10,
    .cache_bytes = {32 << 10, 4 * kMiB, 256 * kMiB, 0},
    .cacheline_bytes = 128,
};

constexpr DeviceModel kGfx1100{
    .name = "gfx1100",
    .isa = "amdgcn-amd-amdhsa--gfx1100",
    .product = "AMD Radeon RX 7900 XTX (simulated)",
    .elf_machine = 0x041,
    .elf_generic_machine = 0x054,
    .chip_id = 0x744c,
    .asic_family = 0x91,
    .compute_units = 96,
    .simds_per_cu = 2,
    .waves_per_cu = 32,
    .wavefront_size = 32,
    .shader_engines = 6,
    .xccs = 1,
    .clock_mhz = 2482,
    .memory_clock_mhz = 1249,
    .memory_width_bits = 384,
    .memory_bytes = 24 * kGiB,
    .lds_bytes = 64 << 10,
    .cache_bytes = {32 << 10, 6 * kMiB, 96 * kMiB, 0},
    .cacheline_bytes = 128,
};

}  // namespace

const DeviceModel& device_model(Arch arch) {
  switch (arch) {
    case Arch::gfx90a:
      return kGfx90a;
    case Arch::gfx942:
      return kGfx942;
    case Arch::gfx1100:
      return kGfx1100;
  }
  return kGfx942;
}

const DeviceModel* model_of_machine(std::uint32_t machine) {
  for (const DeviceModel* model : {&kGfx90a, &kGfx942, &kGfx1100}) {
    if (model->elf_machine == machine) return model;
  }
  return nullptr;
}

}  // namespace kerncap::sim::rt
