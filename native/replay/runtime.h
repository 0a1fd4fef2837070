// The HSA runtime, opened while the program runs: libhsa-runtime64.so.1 must not be mapped before the
// captured address ranges are held (see reserve.h), so nothing of it is linked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "abi/hsa.h"
#include "replay/sim_api.h"

namespace kerncap::replay {

inline constexpr const char* kDefaultRuntime = "libhsa-runtime64.so.1";
inline constexpr const char* kRuntimeName = "the HSA runtime";
inline constexpr const char* kGroupMemory = " bytes of LDS a workgroup; ";

struct Agent {
  abi::hsa_agent_t handle{};
  std::string name;  // "gfx942"
  std::string isa;   // "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"
  std::string product;
  std::uint32_t lds_bytes = 0;          // a workgroup
  std::uint32_t max_workgroup = 0;      // work-items
  std::uint64_t cache_bytes = 0;        // the largest cache
  abi::hsa_amd_memory_pool_t coarse{};  // device memory; handle 0: the agent has none
  abi::hsa_amd_memory_pool_t fine{};
};

class Runtime {
 public:
  // Opens `path` ("libhsa-runtime64.so.1" is looked up as the dynamic linker does) and initialises it.
  // Throws ReplayError (device).
  explicit Runtime(const std::string& path);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // The GPU to replay on: number `index` of those that are there, or (-1) the first of `name`.
  // Throws ReplayError (device), naming the GPUs that are there.
  [[nodiscard]] const Agent& pick(const std::string& name, int index) const;
  [[nodiscard]] const std::vector<Agent>& gpus() const { return gpus_; }

  // Throws ReplayError (device) unless `status` is success. `doing`: "creating a queue".
  void check(abi::hsa_status_t status, const std::string& doing) const;
  [[nodiscard]] std::string status_text(abi::hsa_status_t status) const;

  abi::CoreApiTable core{};  // the exports, found by name; null where this runtime does not have one
  abi::AmdExtTable amd{};
  abi::hsa_ven_amd_loader_1_03_pfn_t loader{};
  SimApi sim;  // all null on real hardware
  abi::hsa_agent_t cpu{};
  abi::hsa_amd_memory_pool_t host_pool{};
  double ns_per_tick = 1.0;  // of dispatch timestamps
  std::string path;          // of the library that was opened

  // Memory of this runtime's devices may be read and written through its addresses (the simulator).
  [[nodiscard]] bool host_can_touch_device() const { return sim.present(); }
  [[nodiscard]] bool has_vmem() const;

  // A buffer in the GPU's own memory; 0: there is no room.
  [[nodiscard]] std::uint64_t allocate_on_device(const Agent& agent, std::uint64_t bytes) const;
  void free_on_device(std::uint64_t address) const;
  // Ordered before every later launch and every later access of the host's. Throws ReplayError.
  void copy_on_device(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) const;
  // Memory for kernel arguments, never freed. Throws ReplayError.
  [[nodiscard]] void* kernarg_memory(const Agent& agent, std::uint64_t bytes) const;

 private:
  void describe(Agent& agent);

  void* library_ = nullptr;
  bool initialised_ = false;
  std::vector<Agent> gpus_;
};

}  // namespace kerncap::replay
