// The process's agents, as the capture and the statistics describe them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "abi/hsa.h"

namespace kerncap::interpose {

struct AgentInfo {
  abi::hsa_agent_t handle{};
  bool gpu = false;
  std::uint32_t index = 0;  // among GPUs
  std::string name;         // gfx942
  std::string isa;          // amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-
  std::string product;
  std::uint32_t compute_units = 0;
  std::uint32_t wavefront = 64;
  std::uint32_t lds_bytes = 0;             // per workgroup
  std::uint64_t cache_bytes = 0;           // last level
  abi::hsa_amd_memory_pool_t host_pool{};  // of a CPU: fine-grained system memory, for staging copies
};

class Agents {
 public:
  // Asks the runtime. Called once, after hsa_init is done.
  void load();

  // Null for a handle that is not known.
  [[nodiscard]] const AgentInfo* find(abi::hsa_agent_t handle) const;
  [[nodiscard]] const std::vector<AgentInfo>& all() const { return agents_; }
  // LiveHeader::devices
  [[nodiscard]] std::string devices_text() const;
  // The staging pool of the first CPU agent; handle 0 if there is none.
  [[nodiscard]] abi::hsa_amd_memory_pool_t host_pool() const;

 private:
  std::vector<AgentInfo> agents_;
};

// "/path/libhsa-runtime64.so.1 1.15", and whether it simulates.
struct RuntimeInfo {
  std::string text;
  bool simulated = false;
};
RuntimeInfo runtime_info();

}  // namespace kerncap::interpose
