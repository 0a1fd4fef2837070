#include "sim/hsa/config.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "sim/hsa/device_model.h"

namespace kerncap::sim::rt {
namespace {

const char* get(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

template <typename Number>
bool parse_number(const char* text, Number* out) {
  const char* end = text + std::strlen(text);
  auto [ptr, status] = std::from_chars(text, end, *out);
  return status == std::errc() && ptr == end;
}

// Leaves *out alone when the variable is not set.
template <typename Number>
bool number_from(const char* name, Number low, Number high, Number* out, std::string* error) {
  const char* text = get(name);
  if (text == nullptr) return true;
  Number value{};
  if (!parse_number(text, &value) || !(value >= low && value <= high)) {  // also not a NaN
    *error = std::string(name) + "=" + text + " is not a number from " + std::to_string(low) + " to " +
             std::to_string(high);
    return false;
  }
  *out = value;
  return true;
}

bool parse_device(const std::string& text, Config* config, std::string* error) {
  std::string name = text;
  if (name.rfind("sim:", 0) == 0) name = name.substr(4);
  if (std::size_t x = name.rfind('x');
      x != std::string::npos && x > 0 && name.compare(0, 3, "gfx") == 0 && x > 2) {
    if (!parse_number(name.c_str() + x + 1, &config->gpu_count) || config->gpu_count < 1 ||
        config->gpu_count > 16) {
      *error = "KERNCAP_SIM=" + text + ": the count after 'x' must be from 1 to 16";
      return false;
    }
    name.resize(x);
  }
  std::optional<Arch> arch = parse_arch(name);
  if (!arch) {
    *error = "KERNCAP_SIM=" + text +
             " is no simulated device; use gfx90a, gfx942 or gfx1100, with xN for N of them";
    return false;
  }
  config->gpu.arch = *arch;
  return true;
}

}  // namespace

std::optional<Config> Config::from_environment(std::string* error) {
  Config config;
  if (const char* device = get("KERNCAP_SIM"); device != nullptr && !parse_device(device, &config, error))
    return std::nullopt;
  const DeviceModel& model = device_model(config.gpu.arch);
  config.gpu.compute_units = model.compute_units;
  config.gpu.clock_hz = kAgentClockHz;
  config.memory_bytes = model.memory_bytes;

  std::uint64_t gib = config.memory_bytes >> 30;
  unsigned deterministic = 0;
  if (!number_from("KERNCAP_SIM_THREADS", 0u, 1024u, &config.gpu.threads, error) ||
      !number_from("KERNCAP_SIM_DETERMINISTIC", 0u, 1u, &deterministic, error) ||
      !number_from("KERNCAP_SIM_MAX_SECONDS", 0.001, 1e7, &config.gpu.max_seconds, error) ||
      !number_from<std::uint64_t>("KERNCAP_SIM_MAX_INSTRUCTIONS", 1, UINT64_MAX,
                                  &config.gpu.max_wave_instructions, error) ||
      !number_from<std::uint64_t>("KERNCAP_SIM_MEMORY_GIB", 1, 4096, &gib, error))
    return std::nullopt;
  config.gpu.deterministic = deterministic == 1;
  config.memory_bytes = gib << 30;

  if (const char* mode = get("KERNCAP_SIM_INTERCEPT")) {
    if (std::strcmp(mode, "batch") != 0 && std::strcmp(mode, "single") != 0) {
      *error = std::string("KERNCAP_SIM_INTERCEPT=") + mode + " must be batch or single";
      return std::nullopt;
    }
    config.intercept_batches = std::strcmp(mode, "batch") == 0;
  }
  return config;
}

}  // namespace kerncap::sim::rt
