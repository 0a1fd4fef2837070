// The system, its extensions, ISAs and status strings.
#include <cstdio>

#include "sim/hsa/impl.h"
#include "sim/hsa/loader_extension.h"
#include "sim/hsa/put.h"
#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

using namespace kerncap::abi;  // NOLINT

const DeviceModel* model_of(Runtime* rt, hsa_isa_t isa) {
  for (const auto& agent : rt->agents())
    if (agent->is_gpu && agent->isa().handle == isa.handle) return agent->model;
  return nullptr;
}

const char* status_text(hsa_status_t status) {
  switch (status) {
#define KERNCAP_SIM_STATUS(name) \
  case name:                     \
    return #name;
    KERNCAP_SIM_STATUS(HSA_STATUS_SUCCESS)
    KERNCAP_SIM_STATUS(HSA_STATUS_INFO_BREAK)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_ARGUMENT)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_QUEUE_CREATION)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_ALLOCATION)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_AGENT)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_REGION)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_SIGNAL)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_QUEUE)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_OUT_OF_RESOURCES)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_PACKET_FORMAT)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_RESOURCE_FREE)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_NOT_INITIALIZED)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_REFCOUNT_OVERFLOW)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_INDEX)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_ISA)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_ISA_NAME)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_CODE_OBJECT)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_EXECUTABLE)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_FROZEN_EXECUTABLE)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_SYMBOL_NAME)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_VARIABLE_UNDEFINED)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_EXCEPTION)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_CODE_SYMBOL)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_FILE)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_CACHE)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_WAVEFRONT)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_RUNTIME_STATE)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_FATAL)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_INVALID_MEMORY_POOL)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_MEMORY_FAULT)
    KERNCAP_SIM_STATUS(HSA_STATUS_CU_MASK_REDUCED)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_OUT_OF_REGISTERS)
    KERNCAP_SIM_STATUS(HSA_STATUS_ERROR_RESOURCE_BUSY)
    KERNCAP_SIM_STATUS(HSA_EXT_STATUS_ERROR_IMAGE_FORMAT_UNSUPPORTED)
    KERNCAP_SIM_STATUS(HSA_EXT_STATUS_ERROR_IMAGE_SIZE_UNSUPPORTED)
    KERNCAP_SIM_STATUS(HSA_EXT_STATUS_ERROR_IMAGE_PITCH_UNSUPPORTED)
    KERNCAP_SIM_STATUS(HSA_EXT_STATUS_ERROR_SAMPLER_DESCRIPTOR_UNSUPPORTED)
#undef KERNCAP_SIM_STATUS
  }
  return nullptr;
}

}  // namespace

namespace impl {

hsa_status_t hsa_status_string(hsa_status_t status, const char** text) {
  if (text == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *text = status_text(status);
  return *text != nullptr ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void* value) {
  KERNCAP_SIM_RUNTIME(rt);
  if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  switch (attribute) {
    case HSA_SYSTEM_INFO_VERSION_MAJOR:
    case HSA_SYSTEM_INFO_VERSION_MINOR:
      put<std::uint16_t>(value, attribute == HSA_SYSTEM_INFO_VERSION_MAJOR ? 1 : 15);
      break;
    case HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR:
    case HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR:
      put<std::uint16_t>(value, attribute == HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR ? 1 : 9);
      break;
    case HSA_SYSTEM_INFO_TIMESTAMP:
      put<std::uint64_t>(value, rt->clock.now_ns());
      break;
    case HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY:
      put<std::uint64_t>(value, kSystemClockHz);
      break;
    case HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT:
      put<std::uint64_t>(value, UINT64_MAX);
      break;
    case HSA_SYSTEM_INFO_ENDIANNESS:
      put(value, HSA_ENDIANNESS_LITTLE);
      break;
    case HSA_SYSTEM_INFO_MACHINE_MODEL:
      put(value, HSA_MACHINE_MODEL_LARGE);
      break;
    case HSA_SYSTEM_INFO_EXTENSIONS:
      std::memset(value, 0, 128);
      static_cast<unsigned char*>(value)[HSA_EXTENSION_AMD_LOADER / 8] |= 1 << (HSA_EXTENSION_AMD_LOADER % 8);
      break;
    case HSA_AMD_SYSTEM_INFO_BUILD_VERSION:
      put<const char*>(value, "kerncap simulator");
      break;
    case HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED:
      put(value, true);
      break;
    case HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED:
      put(value, rt->vmem_ready());
      break;
    case HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT:  // needs XNACK
    case HSA_AMD_SYSTEM_INFO_XNACK_ENABLED:
    case HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED:
      put(value, false);
      break;
    case HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED:
      put(value, false);
      break;
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_extension_get_name(std::uint16_t extension, const char** name) {
  if (name == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  switch (extension) {
    case HSA_EXTENSION_FINALIZER:
      *name = "HSA_EXTENSION_FINALIZER";
      break;
    case HSA_EXTENSION_IMAGES:
      *name = "HSA_EXTENSION_IMAGES";
      break;
    case HSA_EXTENSION_PERFORMANCE_COUNTERS:
      *name = "HSA_EXTENSION_PERFORMANCE_COUNTERS";
      break;
    case HSA_EXTENSION_PROFILING_EVENTS:
      *name = "HSA_EXTENSION_PROFILING_EVENTS";
      break;
    case HSA_EXTENSION_AMD_PROFILER:
      *name = "HSA_EXTENSION_AMD_PROFILER";
      break;
    case HSA_EXTENSION_AMD_LOADER:
      *name = "HSA_EXTENSION_AMD_LOADER";
      break;
    case HSA_EXTENSION_AMD_AQLPROFILE:
      *name = "HSA_EXTENSION_AMD_AQLPROFILE";
      break;
    case HSA_EXTENSION_AMD_PC_SAMPLING:
      *name = "HSA_EXTENSION_AMD_PC_SAMPLING";
      break;
    default:
      *name = "HSA_EXTENSION_INVALID";
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  return HSA_STATUS_SUCCESS;
}

// The loader's, version 1.03, is the only extension here.
hsa_status_t hsa_system_major_extension_supported(std::uint16_t extension, std::uint16_t version_major,
                                                  std::uint16_t* version_minor, bool* result) {
  KERNCAP_SIM_RUNTIME(rt);
  if (result == nullptr || version_minor == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *result = extension == HSA_EXTENSION_AMD_LOADER && version_major == 1;
  if (*result) *version_minor = 3;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_system_extension_supported(std::uint16_t extension, std::uint16_t version_major,
                                            std::uint16_t version_minor, bool* result) {
  std::uint16_t minor = 0;
  hsa_status_t status = hsa_system_major_extension_supported(extension, version_major, &minor, result);
  if (status == HSA_STATUS_SUCCESS) *result = *result && version_minor <= minor;
  return status;
}

hsa_status_t hsa_agent_major_extension_supported(std::uint16_t extension, hsa_agent_t agent,
                                                 std::uint16_t version_major, std::uint16_t* version_minor,
                                                 bool* result) {
  KERNCAP_SIM_RUNTIME(rt);
  if (rt->find_agent(agent) == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  return hsa_system_major_extension_supported(extension, version_major, version_minor, result);
}

hsa_status_t hsa_agent_extension_supported(std::uint16_t extension, hsa_agent_t agent,
                                           std::uint16_t version_major, std::uint16_t version_minor,
                                           bool* result) {
  KERNCAP_SIM_RUNTIME(rt);
  if (rt->find_agent(agent) == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  return hsa_system_extension_supported(extension, version_major, version_minor, result);
}

hsa_status_t hsa_system_get_major_extension_table(std::uint16_t extension, std::uint16_t version_major,
                                                  std::size_t table_length, void* table) {
  KERNCAP_SIM_RUNTIME(rt);
  if (table == nullptr || table_length == 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (extension != HSA_EXTENSION_AMD_LOADER || version_major != 1) return HSA_STATUS_ERROR;
  const hsa_ven_amd_loader_1_03_pfn_t& loader = loader_extension_table();
  std::memset(table, 0, table_length);
  std::memcpy(table, &loader, std::min(table_length, sizeof loader));
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_system_get_extension_table(std::uint16_t extension, std::uint16_t version_major,
                                            std::uint16_t version_minor, void* table) {
  const std::size_t bytes[] = {kLoaderTable100Bytes, kLoaderTable101Bytes, kLoaderTable102Bytes,
                               sizeof(hsa_ven_amd_loader_1_03_pfn_t)};
  if (version_minor > 3) return HSA_STATUS_ERROR;
  return hsa_system_get_major_extension_table(extension, version_major, bytes[version_minor], table);
}

hsa_status_t hsa_agent_iterate_isas(hsa_agent_t handle, hsa_status_t (*callback)(hsa_isa_t, void*),
                                    void* data) {
  KERNCAP_SIM_RUNTIME(rt);
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Agent* agent = rt->find_agent(handle);
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  return agent->is_gpu ? callback(agent->isa(), data) : HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_isa_from_name(const char* name, hsa_isa_t* isa) {
  KERNCAP_SIM_RUNTIME(rt);
  if (name == nullptr || isa == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  for (const auto& agent : rt->agents()) {
    if (agent->is_gpu && std::strcmp(agent->model->isa, name) == 0) {
      *isa = agent->isa();
      return HSA_STATUS_SUCCESS;
    }
  }
  return HSA_STATUS_ERROR_INVALID_ISA_NAME;
}

hsa_status_t hsa_isa_get_info_alt(hsa_isa_t isa, hsa_isa_info_t attribute, void* value) {
  KERNCAP_SIM_RUNTIME(rt);
  if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const DeviceModel* model = model_of(rt, isa);
  if (model == nullptr) return HSA_STATUS_ERROR_INVALID_ISA;
  switch (attribute) {
    case HSA_ISA_INFO_NAME_LENGTH:
      put(value, static_cast<std::uint32_t>(std::strlen(model->isa)) + 1);
      break;
    case HSA_ISA_INFO_NAME:
      std::memcpy(value, model->isa, std::strlen(model->isa) + 1);
      break;
    case HSA_ISA_INFO_CALL_CONVENTION_COUNT:
      put<std::uint32_t>(value, 1);
      break;
    case HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONT_SIZE:
      put<std::uint32_t>(value, model->wavefront_size);
      break;
    case HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONTS_PER_COMPUTE_UNIT:
      put<std::uint32_t>(value, model->waves_per_cu);
      break;
    case HSA_ISA_INFO_MACHINE_MODELS:
      static_cast<bool*>(value)[HSA_MACHINE_MODEL_SMALL] = false;
      static_cast<bool*>(value)[HSA_MACHINE_MODEL_LARGE] = true;
      break;
    case HSA_ISA_INFO_PROFILES:
      static_cast<bool*>(value)[HSA_PROFILE_BASE] = true;
      static_cast<bool*>(value)[HSA_PROFILE_FULL] = false;
      break;
    case HSA_ISA_INFO_DEFAULT_FLOAT_ROUNDING_MODES:
    case HSA_ISA_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES:
      for (int mode = 0; mode < 3; ++mode)
        static_cast<bool*>(value)[mode] = mode == HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR;
      break;
    case HSA_ISA_INFO_FAST_F16_OPERATION:
      put(value, true);
      break;
    case HSA_ISA_INFO_WORKGROUP_MAX_DIM: {
      const std::uint16_t dim[3] = {1024, 1024, 1024};
      std::memcpy(value, dim, sizeof dim);
      break;
    }
    case HSA_ISA_INFO_WORKGROUP_MAX_SIZE:
      put<std::uint32_t>(value, 1024);
      break;
    case HSA_ISA_INFO_GRID_MAX_DIM:
      put(value, hsa_dim3_t{INT32_MAX, UINT16_MAX, UINT16_MAX});
      break;
    case HSA_ISA_INFO_GRID_MAX_SIZE:
      put<std::uint64_t>(value, UINT64_MAX);
      break;
    case HSA_ISA_INFO_FBARRIER_MAX_SIZE:
      put<std::uint32_t>(value, 32);
      break;
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_isa_get_info(hsa_isa_t isa, hsa_isa_info_t attribute, std::uint32_t index, void* value) {
  if (index != 0) return HSA_STATUS_ERROR_INVALID_INDEX;
  return hsa_isa_get_info_alt(isa, attribute, value);
}

hsa_status_t hsa_isa_get_exception_policies(hsa_isa_t isa, hsa_profile_t, std::uint16_t* mask) {
  KERNCAP_SIM_RUNTIME(rt);
  if (mask == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (model_of(rt, isa) == nullptr) return HSA_STATUS_ERROR_INVALID_ISA;
  *mask = 0;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_isa_get_round_method(hsa_isa_t isa, hsa_fp_type_t, hsa_flush_mode_t,
                                      hsa_round_method_t* method) {
  KERNCAP_SIM_RUNTIME(rt);
  if (method == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (model_of(rt, isa) == nullptr) return HSA_STATUS_ERROR_INVALID_ISA;
  *method = HSA_ROUND_METHOD_SINGLE;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_isa_iterate_wavefronts(hsa_isa_t isa, hsa_status_t (*callback)(hsa_wavefront_t, void*),
                                        void* data) {
  KERNCAP_SIM_RUNTIME(rt);
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (model_of(rt, isa) == nullptr) return HSA_STATUS_ERROR_INVALID_ISA;
  return callback({isa.handle}, data);
}

hsa_status_t hsa_wavefront_get_info(hsa_wavefront_t wavefront, hsa_wavefront_info_t attribute, void* value) {
  KERNCAP_SIM_RUNTIME(rt);
  if (value == nullptr || attribute != HSA_WAVEFRONT_INFO_SIZE) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const DeviceModel* model = model_of(rt, {wavefront.handle});
  if (model == nullptr) return HSA_STATUS_ERROR_INVALID_WAVEFRONT;
  put<std::uint32_t>(value, model->wavefront_size);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_isa_compatible(hsa_isa_t code_object_isa, hsa_isa_t agent_isa, bool* result) {
  KERNCAP_SIM_RUNTIME(rt);
  if (result == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (model_of(rt, code_object_isa) == nullptr || model_of(rt, agent_isa) == nullptr)
    return HSA_STATUS_ERROR_INVALID_ISA;
  *result = code_object_isa.handle == agent_isa.handle;
  return HSA_STATUS_SUCCESS;
}

}  // namespace impl
}  // namespace kerncap::sim::rt
