// The functions that allocate, lock and describe memory.
#include "sim/hsa/impl.h"
#include "sim/hsa/put.h"
#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

using namespace kerncap::abi;  // NOLINT

constexpr std::uint64_t kRecommendedGranule = 2 << 20;

// Of an agent's pools, those that a program sees.
hsa_status_t for_each_pool(Agent* agent, hsa_status_t (*callback)(std::uint64_t, void*, void*),
                           void* function, void* data) {
  for (const auto& pool : agent->pools) {
    hsa_status_t status = callback(pool->handle(), function, data);
    if (status != HSA_STATUS_SUCCESS) return status;
  }
  return HSA_STATUS_SUCCESS;
}

}  // namespace

namespace impl {

hsa_status_t hsa_agent_iterate_regions(hsa_agent_t handle, hsa_status_t (*callback)(hsa_region_t, void*),
                                       void* data) {
  KERNCAP_SIM_RUNTIME(rt);
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Agent* agent = rt->find_agent(handle);
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  return for_each_pool(
      agent,
      [](std::uint64_t pool, void* function, void* user) {
        return reinterpret_cast<hsa_status_t (*)(hsa_region_t, void*)>(function)({pool}, user);
      },
      reinterpret_cast<void*>(callback), data);
}

hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t handle,
                                                hsa_status_t (*callback)(hsa_amd_memory_pool_t, void*),
                                                void* data) {
  KERNCAP_SIM_RUNTIME(rt);
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Agent* agent = rt->find_agent(handle);
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  return for_each_pool(
      agent,
      [](std::uint64_t pool, void* function, void* user) {
        return reinterpret_cast<hsa_status_t (*)(hsa_amd_memory_pool_t, void*)>(function)({pool}, user);
      },
      reinterpret_cast<void*>(callback), data);
}

hsa_status_t hsa_region_get_info(hsa_region_t region, hsa_region_info_t attribute, void* value) {
  KERNCAP_SIM_RUNTIME(rt);
  if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Pool* pool = rt->find_pool(region.handle);
  if (pool == nullptr) return HSA_STATUS_ERROR_INVALID_REGION;
  const bool global = pool->segment == HSA_REGION_SEGMENT_GLOBAL;
  switch (attribute) {
    case HSA_REGION_INFO_SEGMENT:
      put(value, pool->segment);
      break;
    case HSA_REGION_INFO_GLOBAL_FLAGS:
      if (!global) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
      put(value, pool->global_flags);
      break;
    case HSA_REGION_INFO_SIZE:
      put<std::size_t>(value, pool->size);
      break;
    case HSA_REGION_INFO_ALLOC_MAX_SIZE:
      put<std::size_t>(value, global ? pool->size : 0);
      break;
    case HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED:
    case HSA_AMD_REGION_INFO_HOST_ACCESSIBLE:
      put(value, global);
      break;
    case HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE:
    case HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT:
      put<std::size_t>(value, global ? kPageBytes : 0);
      break;
    case HSA_AMD_REGION_INFO_BASE:
      put<void*>(value, nullptr);
      break;
    case HSA_AMD_REGION_INFO_BUS_WIDTH:
      put<std::uint32_t>(value, pool->agent->is_gpu ? pool->agent->model->memory_width_bits : 64);
      break;
    case HSA_AMD_REGION_INFO_MAX_CLOCK_FREQUENCY:
      put<std::uint32_t>(value, pool->agent->is_gpu ? pool->agent->model->memory_clock_mhz : 0);
      break;
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t handle, hsa_amd_memory_pool_info_t attribute,
                                          void* value) {
  KERNCAP_SIM_RUNTIME(rt);
  if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Pool* pool = rt->find_pool(handle.handle);
  if (pool == nullptr) return HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
  const bool global = pool->segment == HSA_REGION_SEGMENT_GLOBAL;
  switch (attribute) {
    case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
      put(value, static_cast<hsa_amd_segment_t>(pool->segment));
      break;
    case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
      if (!global) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
      put(value, pool->global_flags);
      break;
    case HSA_AMD_MEMORY_POOL_INFO_SIZE:
      put<std::size_t>(value, pool->size);
      break;
    case HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE:
      put<std::size_t>(value, global ? pool->size : 0);
      break;
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
      put(value, global);
      break;
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE:
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT:
      put<std::size_t>(value, global ? kPageBytes : 0);
      break;
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE:
      put<std::size_t>(value, global ? (pool->is_system() ? kPageBytes : kRecommendedGranule) : 0);
      break;
    case HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL:
      put(value, pool->is_system());
      break;
    case HSA_AMD_MEMORY_POOL_INFO_LOCATION:
      put(value, pool->is_system() ? HSA_AMD_MEMORY_POOL_LOCATION_CPU : HSA_AMD_MEMORY_POOL_LOCATION_GPU);
      break;
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t handle, hsa_amd_memory_pool_t pool_handle,
                                                hsa_amd_agent_memory_pool_info_t attribute, void* value) {
  KERNCAP_SIM_RUNTIME(rt);
  if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Agent* agent = rt->find_agent(handle);
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  Pool* pool = rt->find_pool(pool_handle.handle);
  if (pool == nullptr) return HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
  const bool own = pool->agent == agent;
  switch (attribute) {
    case HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS:
      if (pool->segment == HSA_REGION_SEGMENT_GROUP && !own)
        put(value, HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED);
      else
        put(value, own ? HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT
                       : HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT);
      return HSA_STATUS_SUCCESS;
    case HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS:
      put<std::uint32_t>(value, own ? 0 : 1);
      return HSA_STATUS_SUCCESS;
    case HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO: {
      if (own) return HSA_STATUS_SUCCESS;
      const bool peers = agent->is_gpu && pool->agent->is_gpu;
      hsa_amd_memory_pool_link_info_t link{};
      link.atomic_support_32bit = link.atomic_support_64bit = link.coherent_support = true;
      link.link_type = peers ? HSA_AMD_LINK_INFO_TYPE_XGMI : HSA_AMD_LINK_INFO_TYPE_PCIE;
      link.numa_distance = peers ? 15 : 20;
      put(value, link);
      return HSA_STATUS_SUCCESS;
    }
  }
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_memory_allocate(hsa_region_t region, std::size_t size, void** ptr) {
  KERNCAP_SIM_RUNTIME(rt);
  if (size == 0 || ptr == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Pool* pool = rt->find_pool(region.handle);
  if (pool == nullptr) return HSA_STATUS_ERROR_INVALID_REGION;
  if (pool->segment != HSA_REGION_SEGMENT_GLOBAL) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  return rt->memory.allocate(pool, size, Block::Origin::pool, rt->memory.all_gpus(), ptr);
}

hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t handle, std::size_t size, std::uint32_t,
                                          void** ptr) {
  KERNCAP_SIM_RUNTIME(rt);
  if (size == 0 || ptr == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Pool* pool = rt->find_pool(handle.handle);
  if (pool == nullptr) return HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
  if (pool->segment != HSA_REGION_SEGMENT_GLOBAL) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  return rt->memory.allocate(pool, size, Block::Origin::pool, 0, ptr);
}

hsa_status_t hsa_memory_free(void* ptr) {
  KERNCAP_SIM_RUNTIME(rt);
  return rt->memory.free(ptr);
}

hsa_status_t hsa_amd_memory_pool_free(void* ptr) { return impl::hsa_memory_free(ptr); }

hsa_status_t hsa_amd_agents_allow_access(std::uint32_t num_agents, const hsa_agent_t* agents,
                                         const std::uint32_t* flags, const void* ptr) {
  KERNCAP_SIM_RUNTIME(rt);
  if (num_agents == 0 || agents == nullptr || flags != nullptr || ptr == nullptr)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::optional<GpuSet> gpus = rt->memory.gpu_set(agents, num_agents);
  if (!gpus) return HSA_STATUS_ERROR_INVALID_AGENT;
  return rt->memory.allow_access(*gpus, ptr);
}

// Registration of host memory was for agents of the full profile, which share the process's page tables.
hsa_status_t hsa_memory_register(void* ptr, std::size_t size) {
  KERNCAP_SIM_RUNTIME(rt);
  (void)rt;
  return ptr == nullptr || size == 0 ? HSA_STATUS_ERROR_INVALID_ARGUMENT : HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_memory_deregister(void*, std::size_t) {
  KERNCAP_SIM_RUNTIME(rt);
  (void)rt;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_memory_assign_agent(void* ptr, hsa_agent_t agent, hsa_access_permission_t) {
  KERNCAP_SIM_RUNTIME(rt);
  if (ptr == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->find_agent(agent) == nullptr ? HSA_STATUS_ERROR_INVALID_AGENT : HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_memory_lock(void* host_ptr, std::size_t size, hsa_agent_t* agents, int num_agent,
                                 void** agent_ptr) {
  KERNCAP_SIM_RUNTIME(rt);
  if (size == 0 || host_ptr == nullptr || agent_ptr == nullptr || num_agent < 0 ||
      (agents == nullptr) != (num_agent == 0))
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *agent_ptr = nullptr;
  std::optional<GpuSet> gpus = num_agent == 0
                                   ? rt->memory.all_gpus()
                                   : rt->memory.gpu_set(agents, static_cast<std::size_t>(num_agent));
  if (!gpus) return HSA_STATUS_ERROR_INVALID_AGENT;
  hsa_status_t status = rt->memory.lock(host_ptr, size, *gpus);
  if (status == HSA_STATUS_SUCCESS) *agent_ptr = host_ptr;
  return status;
}

hsa_status_t hsa_amd_memory_lock_to_pool(void* host_ptr, std::size_t size, hsa_agent_t* agents, int num_agent,
                                         hsa_amd_memory_pool_t handle, std::uint32_t, void** agent_ptr) {
  KERNCAP_SIM_RUNTIME(rt);
  Pool* pool = rt->find_pool(handle.handle);
  if (pool == nullptr) return HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
  if (!pool->is_system()) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return hsa_amd_memory_lock(host_ptr, size, agents, num_agent, agent_ptr);
}

hsa_status_t hsa_amd_memory_unlock(void* host_ptr) {
  KERNCAP_SIM_RUNTIME(rt);
  return rt->memory.unlock(host_ptr);
}

hsa_status_t hsa_amd_memory_pool_can_migrate(hsa_amd_memory_pool_t, hsa_amd_memory_pool_t, bool*) {
  return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

hsa_status_t hsa_amd_memory_migrate(const void*, hsa_amd_memory_pool_t, std::uint32_t) {
  return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

hsa_status_t hsa_amd_pointer_info(const void* ptr, hsa_amd_pointer_info_t* info, void* (*alloc)(std::size_t),
                                  std::uint32_t* num_agents_accessible, hsa_agent_t** accessible) {
  KERNCAP_SIM_RUNTIME(rt);
  if (ptr == nullptr || info == nullptr || info->size == 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  hsa_amd_pointer_info_t full{};
  full.size = std::min<std::uint32_t>(info->size, sizeof full);
  full.type = HSA_EXT_POINTER_TYPE_UNKNOWN;
  const auto address = reinterpret_cast<std::uint64_t>(ptr);
  GpuSet gpus = 0;
  bool cpu = false;
  if (std::optional<Block> block = rt->memory.find(address)) {
    void* base = reinterpret_cast<void*>(block->base);
    full.type =
        block->origin == Block::Origin::locked ? HSA_EXT_POINTER_TYPE_LOCKED : HSA_EXT_POINTER_TYPE_HSA;
    full.agentBaseAddress = full.hostBaseAddress = base;
    full.sizeInBytes = block->size;
    full.userData = block->user_data;
    full.agentOwner = (block->pool != nullptr ? block->pool->agent : rt->cpu())->handle();
    full.global_flags =
        block->pool != nullptr ? block->pool->global_flags : HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
    gpus = block->gpus;
    cpu = true;
  } else if (auto reserved = rt->vmem.find_reservation(address)) {
    full.type = HSA_EXT_POINTER_TYPE_RESERVED_ADDR;
    full.agentBaseAddress = full.hostBaseAddress = reinterpret_cast<void*>(reserved->first);
    full.sizeInBytes = reserved->second;
  }
  std::memcpy(info, &full, full.size);
  if (num_agents_accessible == nullptr || accessible == nullptr || alloc == nullptr)
    return HSA_STATUS_SUCCESS;
  std::vector<hsa_agent_t> list;
  for (const auto& agent : rt->agents())
    if (agent->is_gpu ? (gpus >> agent->gpu_index & 1) != 0 : cpu) list.push_back(agent->handle());
  *num_agents_accessible = static_cast<std::uint32_t>(list.size());
  *accessible = nullptr;
  if (list.empty()) return HSA_STATUS_SUCCESS;
  *accessible = static_cast<hsa_agent_t*>(alloc(list.size() * sizeof(hsa_agent_t)));
  if (*accessible == nullptr) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  std::memcpy(*accessible, list.data(), list.size() * sizeof(hsa_agent_t));
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_pointer_info_set_userdata(const void* ptr, void* userdata) {
  KERNCAP_SIM_RUNTIME(rt);
  if (ptr == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->memory.set_user_data(reinterpret_cast<std::uint64_t>(ptr), userdata)
             ? HSA_STATUS_SUCCESS
             : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_amd_register_deallocation_callback(void* ptr, hsa_amd_deallocation_callback_t callback,
                                                    void* user_data) {
  KERNCAP_SIM_RUNTIME(rt);
  if (ptr == nullptr || callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->memory.add_free_callback(ptr, callback, user_data) ? HSA_STATUS_SUCCESS
                                                                : HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

hsa_status_t hsa_amd_deregister_deallocation_callback(void* ptr, hsa_amd_deallocation_callback_t callback) {
  KERNCAP_SIM_RUNTIME(rt);
  if (ptr == nullptr || callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->memory.remove_free_callback(ptr, callback) ? HSA_STATUS_SUCCESS
                                                        : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

}  // namespace impl
}  // namespace kerncap::sim::rt
