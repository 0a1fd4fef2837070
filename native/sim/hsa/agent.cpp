#include "sim/hsa/agent.h"

#include <unistd.h>

#include "sim/hsa/copy_engine.h"

namespace kerncap::sim::rt {
namespace {

using namespace kerncap::abi;  // NOLINT

void add_pool(Agent* agent, hsa_region_segment_t segment, std::uint32_t flags, std::uint64_t size,
              const char* kind) {
  auto pool = std::make_unique<Pool>();
  *pool = {agent, segment, flags, size, kind};
  agent->pools.push_back(std::move(pool));
}

}  // namespace

bool Pool::is_system() const { return !agent->is_gpu; }

Agent::Agent() = default;
Agent::~Agent() = default;

std::vector<std::unique_ptr<Agent>> make_agents(const Config& config) {
  std::vector<std::unique_ptr<Agent>> agents;
  auto cpu = std::make_unique<Agent>();
  const std::uint64_t host_bytes =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  constexpr auto kFine = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
  constexpr auto kCoarse = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;
  add_pool(cpu.get(), HSA_REGION_SEGMENT_GLOBAL, kFine, host_bytes, "host");
  add_pool(cpu.get(), HSA_REGION_SEGMENT_GLOBAL, kFine | HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT,
           host_bytes, "kernarg");
  add_pool(cpu.get(), HSA_REGION_SEGMENT_GLOBAL, kCoarse, host_bytes, "host");
  agents.push_back(std::move(cpu));

  for (unsigned i = 0; i < config.gpu_count; ++i) {
    auto gpu = std::make_unique<Agent>();
    gpu->is_gpu = true;
    gpu->gpu_index = i;
    gpu->node = i + 1;
    gpu->model = &device_model(config.gpu.arch);
    add_pool(gpu.get(), HSA_REGION_SEGMENT_GLOBAL, kCoarse, config.memory_bytes, "device");
    add_pool(gpu.get(), HSA_REGION_SEGMENT_GLOBAL, kFine, config.memory_bytes, "fine");
    add_pool(gpu.get(), HSA_REGION_SEGMENT_GROUP, 0, gpu->model->lds_bytes, "group");
    gpu->gpu = std::make_unique<Gpu>(config.gpu, gpu->memory);
    agents.push_back(std::move(gpu));
  }
  return agents;
}

}  // namespace kerncap::sim::rt
