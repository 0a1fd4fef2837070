// Agents (the CPU and the simulated GPUs) and their memory pools.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "abi/hsa.h"
#include "sim/device/gpu.h"
#include "sim/hsa/config.h"
#include "sim/hsa/device_model.h"

namespace kerncap::sim::rt {

class CopyEngine;
struct Agent;

// A pool and a region are the same thing under two handle types, as in ROCr.
struct Pool {
  Agent* agent = nullptr;
  abi::hsa_region_segment_t segment = abi::HSA_REGION_SEGMENT_GLOBAL;
  std::uint32_t global_flags = 0;  // hsa_amd_memory_pool_global_flag_t
  std::uint64_t size = 0;
  const char* kind = "";  // of allocations, for messages

  [[nodiscard]] bool is_system() const;
  [[nodiscard]] std::uint64_t handle() const { return reinterpret_cast<std::uint64_t>(this); }
};

struct Agent {
  Agent();
  ~Agent();

  bool is_gpu = false;
  unsigned gpu_index = 0;  // among GPUs
  unsigned node = 0;       // driver node: the CPU is 0
  const DeviceModel* model = nullptr;
  std::vector<std::unique_ptr<Pool>> pools;
  // Of a GPU: what it may touch, what executes, and its DMA engine.
  AddressSpace memory;
  std::unique_ptr<Gpu> gpu;
  std::unique_ptr<CopyEngine> copies;

  [[nodiscard]] abi::hsa_agent_t handle() const { return {reinterpret_cast<std::uint64_t>(this)}; }
  [[nodiscard]] abi::hsa_isa_t isa() const { return {reinterpret_cast<std::uint64_t>(model)}; }
};

std::vector<std::unique_ptr<Agent>> make_agents(const Config& config);

}  // namespace kerncap::sim::rt
