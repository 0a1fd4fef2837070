// What agents say about themselves.
#include <cstdio>
#include <thread>

#include "sim/hsa/impl.h"
#include "sim/hsa/put.h"
#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

using namespace kerncap::abi;  // NOLINT

constexpr std::uint32_t kMaxWorkgroup = 1024;
constexpr std::uint32_t kMaxQueuePackets = 131072;
constexpr std::uint32_t kMinQueuePackets = 64;

// MI300X: 16 SDMA engines, of which 14 serve the links between GPUs.
constexpr std::uint32_t kSdmaEngines = 2;

void put_extensions(void* value) {
  std::memset(value, 0, 128);
  static_cast<unsigned char*>(value)[HSA_EXTENSION_AMD_LOADER / 8] |= 1 << (HSA_EXTENSION_AMD_LOADER % 8);
  // HIP takes the pitch of hipMallocPitch from the attributes of this one. There are no images: creating one
  // says so.
  static_cast<unsigned char*>(value)[HSA_EXTENSION_IMAGES / 8] |= 1 << (HSA_EXTENSION_IMAGES % 8);
}

// Attributes that every agent has. Whether `attribute` is one.
bool common_info(const Agent& agent, hsa_agent_info_t attribute, void* value) {
  switch (attribute) {
    case HSA_AGENT_INFO_VENDOR_NAME:
      put_text<64>(value, agent.is_gpu ? "AMD" : "CPU");
      return true;
    case HSA_AGENT_INFO_FEATURE:
      put<std::uint32_t>(value, agent.is_gpu ? +HSA_AGENT_FEATURE_KERNEL_DISPATCH : 0u);
      return true;
    case HSA_AGENT_INFO_MACHINE_MODEL:
      put(value, HSA_MACHINE_MODEL_LARGE);
      return true;
    case HSA_AGENT_INFO_PROFILE:
      put(value, agent.is_gpu ? HSA_PROFILE_BASE : HSA_PROFILE_FULL);
      return true;
    case HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE:
    case HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES:
      put(value, HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR);
      return true;
    case HSA_AGENT_INFO_NODE:
    case HSA_AMD_AGENT_INFO_DRIVER_NODE_ID:
      put<std::uint32_t>(value, agent.node);
      return true;
    case HSA_AGENT_INFO_DEVICE:
      put(value, agent.is_gpu ? HSA_DEVICE_TYPE_GPU : HSA_DEVICE_TYPE_CPU);
      return true;
    case HSA_AGENT_INFO_EXTENSIONS:
      put_extensions(value);
      return true;
    case HSA_AGENT_INFO_VERSION_MAJOR:
    case HSA_AGENT_INFO_VERSION_MINOR:
      put<std::uint16_t>(value, 1);
      return true;
    case HSA_AMD_AGENT_INFO_DOMAIN:
      put<std::uint32_t>(value, 0);
      return true;
    case HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS:
      put(value, true);
      return true;
    case HSA_AMD_AGENT_INFO_IOMMU_SUPPORT:
      put(value, HSA_IOMMU_SUPPORT_NONE);
      return true;
    case HSA_AMD_AGENT_INFO_HDP_FLUSH:
      put(value, hsa_amd_hdp_flush_t{});
      return true;
    case HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES:
    case HSA_AMD_AGENT_INFO_AQL_EXTENSIONS:
      put<std::uint64_t>(value, 0);
      return true;
    default:
      return false;
  }
}

hsa_status_t cpu_info(hsa_agent_info_t attribute, void* value) {
  const std::uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  switch (attribute) {
    case HSA_AGENT_INFO_NAME:
      put_text<64>(value, "Host CPU");
      break;
    case HSA_AMD_AGENT_INFO_PRODUCT_NAME:
      put_text<64>(value, "Host CPU");
      break;
    case HSA_AMD_AGENT_INFO_UUID:
      put_text<21>(value, "CPU-XX");
      break;
    case HSA_AGENT_INFO_CACHE_SIZE:
      std::memset(value, 0, 4 * sizeof(std::uint32_t));
      break;
    case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT:
      put(value, cores);
      break;
    case HSA_AMD_AGENT_INFO_CACHELINE_SIZE:
      put<std::uint32_t>(value, 64);
      break;
    case HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES:
    case HSA_AGENT_INFO_FAST_F16_OPERATION:
      put(value, false);
      break;
    case HSA_AGENT_INFO_WAVEFRONT_SIZE:
    case HSA_AGENT_INFO_WORKGROUP_MAX_SIZE:
    case HSA_AGENT_INFO_GRID_MAX_SIZE:
    case HSA_AGENT_INFO_FBARRIER_MAX_SIZE:
    case HSA_AGENT_INFO_QUEUES_MAX:
    case HSA_AGENT_INFO_QUEUE_MIN_SIZE:
    case HSA_AGENT_INFO_QUEUE_MAX_SIZE:
    case HSA_AMD_AGENT_INFO_CHIP_ID:
    case HSA_AMD_AGENT_INFO_BDFID:
    case HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY:
    case HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY:
    case HSA_AMD_AGENT_INFO_MEMORY_WIDTH:
    case HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS:
    case HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU:
    case HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU:
    case HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES:
    case HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE:
    case HSA_AMD_AGENT_INFO_ASIC_REVISION:
    case HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID:
    case HSA_AMD_AGENT_INFO_NUM_SDMA_ENG:
    case HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG:
      put<std::uint32_t>(value, 0);
      break;
    case HSA_AGENT_INFO_WORKGROUP_MAX_DIM:
      std::memset(value, 0, 3 * sizeof(std::uint16_t));
      break;
    case HSA_AGENT_INFO_GRID_MAX_DIM:
      put(value, hsa_dim3_t{});
      break;
    case HSA_AGENT_INFO_QUEUE_TYPE:
      put(value, HSA_QUEUE_TYPE_MULTI);
      break;
    case HSA_AGENT_INFO_ISA:
      put(value, hsa_isa_t{0});
      break;
    case HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY:
      put<std::uint64_t>(value, kSystemClockHz);
      break;
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  return HSA_STATUS_SUCCESS;
}

// Numbers that fit 32 bits; UINT64_MAX for attributes that are something else.
std::uint64_t gpu_number(const Agent& agent, hsa_agent_info_t attribute) {
  const DeviceModel& model = *agent.model;
  switch (attribute) {
    case HSA_AGENT_INFO_WAVEFRONT_SIZE:
      return model.wavefront_size;
    case HSA_AGENT_INFO_WORKGROUP_MAX_SIZE:
      return kMaxWorkgroup;
    case HSA_AGENT_INFO_GRID_MAX_SIZE:
      return UINT32_MAX;
    case HSA_AGENT_INFO_FBARRIER_MAX_SIZE:
      return 32;
    case HSA_AGENT_INFO_QUEUES_MAX:
      return 128;
    case HSA_AGENT_INFO_QUEUE_MIN_SIZE:
      return kMinQueuePackets;
    case HSA_AGENT_INFO_QUEUE_MAX_SIZE:
      return kMaxQueuePackets;
    case HSA_AGENT_INFO_QUEUE_TYPE:
      return HSA_QUEUE_TYPE_MULTI;
    case HSA_AMD_AGENT_INFO_CHIP_ID:
      return model.chip_id;
    case HSA_AMD_AGENT_INFO_CACHELINE_SIZE:
      return model.cacheline_bytes;
    case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT:
    case HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT:
      return model.compute_units;
    case HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY:
      return model.clock_mhz;
    case HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS:
      return 4;
    case HSA_AMD_AGENT_INFO_BDFID:
      return (agent.gpu_index + 1) << 8;
    case HSA_AMD_AGENT_INFO_MEMORY_WIDTH:
      return model.memory_width_bits;
    case HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY:
      return model.memory_clock_mhz;
    case HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU:
      return model.waves_per_cu;
    case HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU:
      return model.simds_per_cu;
    case HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES:
      return model.shader_engines;
    case HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE:
      return 1;
    case HSA_AMD_AGENT_INFO_ASIC_REVISION:
      return 1;
    case HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID:
      return model.asic_family;
    case HSA_AMD_AGENT_INFO_UCODE_VERSION:
    case HSA_AMD_AGENT_INFO_SDMA_UCODE_VERSION:
      return 1;
    case HSA_AMD_AGENT_INFO_NUM_SDMA_ENG:
      return kSdmaEngines;
    case HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG:
      return 0;
    case HSA_AMD_AGENT_INFO_NUM_XCC:
      return model.xccs;
    case HSA_AMD_AGENT_INFO_DRIVER_UID:
      return agent.node;
    default:
      return UINT64_MAX;
  }
}

hsa_status_t gpu_info(Runtime* rt, const Agent& agent, hsa_agent_info_t attribute, void* value) {
  if (std::uint64_t number = gpu_number(agent, attribute); number != UINT64_MAX) {
    put(value, static_cast<std::uint32_t>(number));
    return HSA_STATUS_SUCCESS;
  }
  switch (attribute) {
    case HSA_AGENT_INFO_NAME:
      put_text<64>(value, agent.model->name);
      break;
    case HSA_AMD_AGENT_INFO_PRODUCT_NAME:
      put_text<64>(value, agent.model->product);
      break;
    case HSA_AMD_AGENT_INFO_UUID: {
      char uuid[21];  // 20 characters and a terminator, as the attribute is
      std::snprintf(uuid, sizeof uuid, "GPU-%016x", 0x51a00000u + agent.gpu_index);
      std::memcpy(value, uuid, sizeof uuid);
      break;
    }
    case HSA_AGENT_INFO_FAST_F16_OPERATION:
    case HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES:
      put(value, true);
      break;
    case HSA_AGENT_INFO_WORKGROUP_MAX_DIM: {
      const std::uint16_t dim[3] = {kMaxWorkgroup, kMaxWorkgroup, kMaxWorkgroup};
      std::memcpy(value, dim, sizeof dim);
      break;
    }
    case HSA_AGENT_INFO_GRID_MAX_DIM:
      put(value, hsa_dim3_t{INT32_MAX, UINT16_MAX, UINT16_MAX});
      break;
    case HSA_AGENT_INFO_CACHE_SIZE:
      std::memcpy(value, agent.model->cache_bytes, sizeof agent.model->cache_bytes);
      break;
    case HSA_AGENT_INFO_ISA:
      put(value, agent.isa());
      break;
    case HSA_AMD_AGENT_INFO_MEMORY_AVAIL:
      put<std::uint64_t>(value, rt->memory.available(agent));
      break;
    case HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY:
      put<std::uint64_t>(value, kAgentClockHz);
      break;
    case HSA_AMD_AGENT_INFO_NEAREST_CPU:
      put(value, rt->cpu()->handle());
      break;
    case HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_MAX:
    case HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_CURRENT:
      put<std::uint64_t>(value, 4ull << 30);
      break;
    case HSA_EXT_AGENT_INFO_IMAGE_ARRAY_MAX_LAYERS:
    case HSA_EXT_AGENT_INFO_MAX_IMAGE_RD_HANDLES:
    case HSA_EXT_AGENT_INFO_MAX_IMAGE_RORW_HANDLES:
    case HSA_EXT_AGENT_INFO_MAX_SAMPLER_HANDLERS:
    case HSA_EXT_AGENT_INFO_IMAGE_1D_MAX_ELEMENTS:
    case HSA_EXT_AGENT_INFO_IMAGE_1DA_MAX_ELEMENTS:
    case HSA_EXT_AGENT_INFO_IMAGE_1DB_MAX_ELEMENTS:
      put<std::uint32_t>(value, 0);  // no images
      break;
    case HSA_EXT_AGENT_INFO_IMAGE_LINEAR_ROW_PITCH_ALIGNMENT:
      put<std::uint32_t>(value, 256);
      break;
    case HSA_EXT_AGENT_INFO_IMAGE_2D_MAX_ELEMENTS:
    case HSA_EXT_AGENT_INFO_IMAGE_2DA_MAX_ELEMENTS:
    case HSA_EXT_AGENT_INFO_IMAGE_2DDEPTH_MAX_ELEMENTS:
    case HSA_EXT_AGENT_INFO_IMAGE_2DADEPTH_MAX_ELEMENTS:
      std::memset(value, 0, 2 * sizeof(std::uint32_t));
      break;
    case HSA_EXT_AGENT_INFO_IMAGE_3D_MAX_ELEMENTS:
      std::memset(value, 0, 3 * sizeof(std::uint32_t));
      break;
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  return HSA_STATUS_SUCCESS;
}

}  // namespace

namespace impl {

hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t, void*), void* data) {
  KERNCAP_SIM_RUNTIME(rt);
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  for (const auto& agent : rt->agents())
    if (hsa_status_t status = callback(agent->handle(), data); status != HSA_STATUS_SUCCESS) return status;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_agent_get_info(hsa_agent_t handle, hsa_agent_info_t attribute, void* value) {
  KERNCAP_SIM_RUNTIME(rt);
  if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Agent* agent = rt->find_agent(handle);
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  if (common_info(*agent, attribute, value)) return HSA_STATUS_SUCCESS;
  return agent->is_gpu ? gpu_info(rt, *agent, attribute, value) : cpu_info(attribute, value);
}

hsa_status_t hsa_agent_get_exception_policies(hsa_agent_t agent, hsa_profile_t, std::uint16_t* mask) {
  KERNCAP_SIM_RUNTIME(rt);
  if (mask == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (rt->find_agent(agent) == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  *mask = 0;
  return HSA_STATUS_SUCCESS;
}

// A cache's handle is the agent's with the level in the low bits, which alignment leaves free.
hsa_status_t hsa_agent_iterate_caches(hsa_agent_t handle, hsa_status_t (*callback)(hsa_cache_t, void*),
                                      void* data) {
  KERNCAP_SIM_RUNTIME(rt);
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Agent* agent = rt->find_agent(handle);
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  if (!agent->is_gpu) return HSA_STATUS_SUCCESS;
  for (unsigned level = 1; level <= 4; ++level) {
    if (agent->model->cache_bytes[level - 1] == 0) continue;
    hsa_status_t status = callback({handle.handle | level}, data);
    if (status != HSA_STATUS_SUCCESS) return status;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_cache_get_info(hsa_cache_t cache, hsa_cache_info_t attribute, void* value) {
  KERNCAP_SIM_RUNTIME(rt);
  if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const unsigned level = cache.handle & 7;
  Agent* agent = rt->find_gpu({cache.handle & ~std::uint64_t{7}});
  if (agent == nullptr || level < 1 || level > 4) return HSA_STATUS_ERROR_INVALID_CACHE;
  char name[32];
  const int length = std::snprintf(name, sizeof name, "%s L%u", agent->model->name, level);
  switch (attribute) {
    case HSA_CACHE_INFO_NAME_LENGTH:
      put(value, static_cast<std::uint32_t>(length));
      return HSA_STATUS_SUCCESS;
    case HSA_CACHE_INFO_NAME:
      std::memcpy(value, name, static_cast<std::size_t>(length) + 1);
      return HSA_STATUS_SUCCESS;
    case HSA_CACHE_INFO_LEVEL:
      put(value, static_cast<std::uint8_t>(level));
      return HSA_STATUS_SUCCESS;
    case HSA_CACHE_INFO_SIZE:
      put(value, agent->model->cache_bytes[level - 1]);
      return HSA_STATUS_SUCCESS;
  }
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_amd_coherency_get_type(hsa_agent_t agent, hsa_amd_coherency_type_t* type) {
  KERNCAP_SIM_RUNTIME(rt);
  if (type == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (rt->find_gpu(agent) == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  *type = HSA_AMD_COHERENCY_TYPE_COHERENT;
  return HSA_STATUS_SUCCESS;
}

// All simulated memory is coherent; both types are.
hsa_status_t hsa_amd_coherency_set_type(hsa_agent_t agent, hsa_amd_coherency_type_t type) {
  KERNCAP_SIM_RUNTIME(rt);
  if (type > HSA_AMD_COHERENCY_TYPE_NONCOHERENT) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return rt->find_gpu(agent) == nullptr ? HSA_STATUS_ERROR_INVALID_AGENT : HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_agent_set_async_scratch_limit(hsa_agent_t agent, std::size_t) {
  KERNCAP_SIM_RUNTIME(rt);
  return rt->find_gpu(agent) == nullptr ? HSA_STATUS_ERROR_INVALID_AGENT : HSA_STATUS_SUCCESS;
}

}  // namespace impl
}  // namespace kerncap::sim::rt
