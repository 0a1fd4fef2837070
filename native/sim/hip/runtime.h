// The HSA agents and pools that the library works with, found once at the first HIP call.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "abi/hsa.h"

namespace kerncap::sim::hip {

class HardwareQueue;
class Stream;

struct Gpu {
  int ordinal = 0;
  abi::hsa_agent_t agent{};
  std::string arch;     // "gfx942"
  std::string product;  // marketing name
  std::uint32_t compute_units = 0;
  std::uint32_t wavefront = 64;
  std::uint32_t max_queue_packets = 0;
  std::size_t memory_bytes = 0;
  std::size_t lds_bytes = 65536;
  abi::hsa_amd_memory_pool_t coarse{};
  abi::hsa_amd_memory_pool_t fine{};  // handle 0 where the device has none

  // Submission to this device: its streams, queues and what they wait for.
  std::mutex mutex;
  std::vector<std::unique_ptr<HardwareQueue>> queues;
  std::vector<std::unique_ptr<Stream>> streams;  // the first is the null stream
  Stream* null_stream = nullptr;

  Gpu();
  ~Gpu();
};

struct Runtime {
  std::vector<std::unique_ptr<Gpu>> gpus;
  abi::hsa_agent_t cpu{};
  abi::hsa_amd_memory_pool_t host_fine{};
  abi::hsa_amd_memory_pool_t host_kernarg{};
  std::uint64_t clock_hz = 0;  // of the timestamps of signals

  [[nodiscard]] std::vector<abi::hsa_agent_t> gpu_agents() const;
};

// The runtime; initialises HSA at the first call. Null where HSA cannot be initialised or shows no GPU.
Runtime* runtime();

// The GPU that the calling thread has set, or null without one.
Gpu* current_gpu();
int current_device();
bool set_current_device(int ordinal);

}  // namespace kerncap::sim::hip
