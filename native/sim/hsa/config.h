// What the environment says about the simulated machine.
#pragma once

#include <optional>
#include <string>

#include "sim/device/gpu.h"

namespace kerncap::sim::rt {

struct Config {
  GpuConfig gpu;
  unsigned gpu_count = 1;
  // Intercept handlers get all packets of a doorbell ring at once, or one packet a call as in ROCm 7.0 and
  // older.
  bool intercept_batches = true;
  std::uint64_t memory_bytes = 0;  // device memory of each GPU; 0: what the real one has

  // Reads KERNCAP_SIM (gfx942, gfx942x2 ...), KERNCAP_SIM_THREADS, KERNCAP_SIM_DETERMINISTIC,
  // KERNCAP_SIM_MAX_SECONDS, KERNCAP_SIM_MAX_INSTRUCTIONS, KERNCAP_SIM_MEMORY_GIB and
  // KERNCAP_SIM_INTERCEPT (batch or single). On a value it cannot use: nullopt, and why in `*error`.
  static std::optional<Config> from_environment(std::string* error);
};

}  // namespace kerncap::sim::rt
