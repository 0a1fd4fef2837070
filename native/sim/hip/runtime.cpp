#include "sim/hip/runtime.h"

#include <cstring>

#include "abi/hsa_functions.h"
#include "sim/hip/queue.h"
#include "sim/hip/stream.h"

namespace kerncap::sim::hip {
namespace {

thread_local int thread_device = 0;

template <typename T>
T agent_info(abi::hsa_agent_t agent, abi::hsa_agent_info_t what, T otherwise) {
  T value = otherwise;
  return abi::hsa_agent_get_info(agent, what, &value) == abi::HSA_STATUS_SUCCESS ? value : otherwise;
}

std::string agent_text(abi::hsa_agent_t agent, abi::hsa_agent_info_t what) {
  char text[64] = {};
  if (abi::hsa_agent_get_info(agent, what, text) != abi::HSA_STATUS_SUCCESS) return {};
  return std::string(text, strnlen(text, sizeof(text)));
}

struct PoolInfo {
  abi::hsa_amd_segment_t segment = abi::HSA_AMD_SEGMENT_PRIVATE;
  std::uint32_t flags = 0;
  bool allocatable = false;
  std::size_t bytes = 0;
};

PoolInfo describe(abi::hsa_amd_memory_pool_t pool) {
  PoolInfo info;
  abi::hsa_amd_memory_pool_get_info(pool, abi::HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &info.segment);
  abi::hsa_amd_memory_pool_get_info(pool, abi::HSA_AMD_MEMORY_POOL_INFO_SIZE, &info.bytes);
  if (info.segment != abi::HSA_AMD_SEGMENT_GLOBAL) return info;
  abi::hsa_amd_memory_pool_get_info(pool, abi::HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &info.flags);
  abi::hsa_amd_memory_pool_get_info(pool, abi::HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED,
                                    &info.allocatable);
  return info;
}

abi::hsa_status_t add_cpu_pool(abi::hsa_amd_memory_pool_t pool, void* data) {
  auto& found = *static_cast<Runtime*>(data);
  const PoolInfo info = describe(pool);
  if (!info.allocatable) return abi::HSA_STATUS_SUCCESS;
  const bool fine = (info.flags & abi::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) != 0;
  const bool kernarg = (info.flags & abi::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) != 0;
  if (kernarg && found.host_kernarg.handle == 0) found.host_kernarg = pool;
  if (fine && (!kernarg || found.host_fine.handle == 0)) found.host_fine = pool;
  return abi::HSA_STATUS_SUCCESS;
}

abi::hsa_status_t add_gpu_pool(abi::hsa_amd_memory_pool_t pool, void* data) {
  auto& gpu = *static_cast<Gpu*>(data);
  const PoolInfo info = describe(pool);
  if (info.segment == abi::HSA_AMD_SEGMENT_GROUP && info.bytes > 0) gpu.lds_bytes = info.bytes;
  if (!info.allocatable) return abi::HSA_STATUS_SUCCESS;
  if ((info.flags & abi::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) != 0 && gpu.coarse.handle == 0) {
    gpu.coarse = pool;
    gpu.memory_bytes = info.bytes;
  } else if ((info.flags & abi::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) != 0 && gpu.fine.handle == 0) {
    gpu.fine = pool;
  }
  return abi::HSA_STATUS_SUCCESS;
}

abi::hsa_status_t add_agent(abi::hsa_agent_t agent, void* data) {
  auto& found = *static_cast<Runtime*>(data);
  const auto type = agent_info(agent, abi::HSA_AGENT_INFO_DEVICE, abi::HSA_DEVICE_TYPE_CPU);
  if (type == abi::HSA_DEVICE_TYPE_CPU && found.cpu.handle == 0) {
    found.cpu = agent;
    abi::hsa_amd_agent_iterate_memory_pools(agent, add_cpu_pool, data);
  } else if (type == abi::HSA_DEVICE_TYPE_GPU) {
    auto gpu = std::make_unique<Gpu>();
    gpu->ordinal = static_cast<int>(found.gpus.size());
    gpu->agent = agent;
    gpu->arch = agent_text(agent, abi::HSA_AGENT_INFO_NAME);
    gpu->product = agent_text(agent, abi::HSA_AMD_AGENT_INFO_PRODUCT_NAME);
    gpu->compute_units = agent_info<std::uint32_t>(agent, abi::HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, 1);
    gpu->wavefront = agent_info<std::uint32_t>(agent, abi::HSA_AGENT_INFO_WAVEFRONT_SIZE, 64);
    gpu->max_queue_packets = agent_info<std::uint32_t>(agent, abi::HSA_AGENT_INFO_QUEUE_MAX_SIZE, 4096);
    abi::hsa_amd_agent_iterate_memory_pools(agent, add_gpu_pool, gpu.get());
    if (gpu->coarse.handle != 0) found.gpus.push_back(std::move(gpu));
  }
  return abi::HSA_STATUS_SUCCESS;
}

Runtime* start() {
  if (abi::hsa_init() != abi::HSA_STATUS_SUCCESS) return nullptr;
  // Never destroyed: programs call HIP from their own static destructors.
  auto* found = new Runtime;
  abi::hsa_iterate_agents(add_agent, found);
  abi::hsa_system_get_info(abi::HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &found->clock_hz);
  if (found->host_kernarg.handle == 0) found->host_kernarg = found->host_fine;
  if (found->gpus.empty() || found->host_fine.handle == 0) return nullptr;
  for (auto& gpu : found->gpus) {
    gpu->streams.push_back(std::make_unique<Stream>(*gpu, 0U, 0));
    gpu->null_stream = gpu->streams.front().get();
  }
  return found;
}

}  // namespace

Gpu::Gpu() = default;
Gpu::~Gpu() = default;

std::vector<abi::hsa_agent_t> Runtime::gpu_agents() const {
  std::vector<abi::hsa_agent_t> agents;
  for (const auto& gpu : gpus) agents.push_back(gpu->agent);
  return agents;
}

Runtime* runtime() {
  static Runtime* const instance = start();
  return instance;
}

Gpu* current_gpu() {
  Runtime* rt = runtime();
  return rt == nullptr ? nullptr : rt->gpus[static_cast<std::size_t>(thread_device)].get();
}

int current_device() { return thread_device; }

bool set_current_device(int ordinal) {
  Runtime* rt = runtime();
  if (rt == nullptr || ordinal < 0 || static_cast<std::size_t>(ordinal) >= rt->gpus.size()) return false;
  thread_device = ordinal;
  return true;
}

}  // namespace kerncap::sim::hip
