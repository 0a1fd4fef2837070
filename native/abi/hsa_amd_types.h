// AMD's extension of the HSA ABI: memory pools, pointer information, virtual memory, SVM, profiling, events.
#pragma once

#include "abi/hsa_code_types.h"

namespace kerncap::abi {

// Vendor-specific AQL packets: header of packet type 0, then the AMD format.
enum hsa_amd_packet_type_t : std::uint32_t {
  HSA_AMD_PACKET_TYPE_BARRIER_VALUE = 2,
  HSA_AMD_PACKET_TYPE_AIE_ERT = 3,
};

struct hsa_amd_vendor_packet_header_t {
  std::uint16_t header;
  std::uint8_t AmdFormat;
  std::uint8_t reserved;
};

struct hsa_amd_barrier_value_packet_t {
  hsa_amd_vendor_packet_header_t header;
  std::uint32_t reserved0;
  hsa_signal_t signal;
  hsa_signal_value_t value;
  hsa_signal_value_t mask;
  hsa_signal_condition32_t cond;
  std::uint32_t reserved1;
  std::uint64_t reserved2;
  std::uint64_t reserved3;
  hsa_signal_t completion_signal;
};
static_assert(sizeof(hsa_amd_barrier_value_packet_t) == 64);

enum hsa_amd_agent_memory_properties_t : std::uint32_t {
  HSA_AMD_MEMORY_PROPERTY_AGENT_IS_APU = 1,
};

enum hsa_amd_sdma_engine_id_t : std::uint32_t {
  HSA_AMD_SDMA_ENGINE_0 = 1,
  HSA_AMD_SDMA_ENGINE_1 = 2,
  HSA_AMD_SDMA_ENGINE_2 = 4,
  HSA_AMD_SDMA_ENGINE_3 = 8,
  HSA_AMD_SDMA_ENGINE_4 = 16,
  HSA_AMD_SDMA_ENGINE_5 = 0x20,
  HSA_AMD_SDMA_ENGINE_6 = 0x40,
  HSA_AMD_SDMA_ENGINE_7 = 0x80,
  HSA_AMD_SDMA_ENGINE_8 = 0x100,
  HSA_AMD_SDMA_ENGINE_9 = 0x200,
  HSA_AMD_SDMA_ENGINE_10 = 0x400,
  HSA_AMD_SDMA_ENGINE_11 = 0x800,
  HSA_AMD_SDMA_ENGINE_12 = 0x1000,
  HSA_AMD_SDMA_ENGINE_13 = 0x2000,
  HSA_AMD_SDMA_ENGINE_14 = 0x4000,
  HSA_AMD_SDMA_ENGINE_15 = 0x8000,
};

enum hsa_amd_coherency_type_t : std::uint32_t {
  HSA_AMD_COHERENCY_TYPE_COHERENT = 0,
  HSA_AMD_COHERENCY_TYPE_NONCOHERENT = 1,
};

enum hsa_amd_iommu_version_t : std::uint32_t {
  HSA_IOMMU_SUPPORT_NONE = 0,
  HSA_IOMMU_SUPPORT_V2 = 1,
};

struct hsa_amd_hdp_flush_t {
  std::uint32_t* HDP_MEM_FLUSH_CNTL;
  std::uint32_t* HDP_REG_FLUSH_CNTL;
};

// Ticks of HSA_SYSTEM_INFO_TIMESTAMP.
struct hsa_amd_profiling_dispatch_time_t {
  std::uint64_t start;
  std::uint64_t end;
};

struct hsa_amd_profiling_async_copy_time_t {
  std::uint64_t start;
  std::uint64_t end;
};

enum hsa_amd_signal_attribute_t : std::uint32_t {
  HSA_AMD_SIGNAL_AMD_GPU_ONLY = 1,
  HSA_AMD_SIGNAL_IPC = 2,
};

// Returns true to be called again the next time the condition holds.
using hsa_amd_signal_handler = bool (*)(hsa_signal_value_t value, void* arg);

enum hsa_amd_segment_t : std::uint32_t {
  HSA_AMD_SEGMENT_GLOBAL = 0,
  HSA_AMD_SEGMENT_READONLY = 1,
  HSA_AMD_SEGMENT_PRIVATE = 2,
  HSA_AMD_SEGMENT_GROUP = 3,
};

struct hsa_amd_memory_pool_t {
  std::uint64_t handle;
};

enum hsa_amd_memory_pool_global_flag_t : std::uint32_t {
  HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT = 1,
  HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED = 2,
  HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED = 4,
  HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED = 8,
};

enum hsa_amd_memory_pool_location_t : std::uint32_t {
  HSA_AMD_MEMORY_POOL_LOCATION_CPU = 0,
  HSA_AMD_MEMORY_POOL_LOCATION_GPU = 1,
};

enum hsa_amd_memory_pool_info_t : std::uint32_t {
  HSA_AMD_MEMORY_POOL_INFO_SEGMENT = 0,
  HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS = 1,
  HSA_AMD_MEMORY_POOL_INFO_SIZE = 2,
  HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED = 5,
  HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE = 6,
  HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT = 7,
  HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL = 15,
  HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE = 16,
  HSA_AMD_MEMORY_POOL_INFO_LOCATION = 17,
  HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE = 18,
};

enum hsa_amd_memory_pool_flag_t : std::uint32_t {
  HSA_AMD_MEMORY_POOL_STANDARD_FLAG = 0,
  HSA_AMD_MEMORY_POOL_PCIE_FLAG = 1,
  HSA_AMD_MEMORY_POOL_CONTIGUOUS_FLAG = 2,
  HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG = 4,
};

enum hsa_amd_memory_pool_access_t : std::uint32_t {
  HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED = 0,
  HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT = 1,
  HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT = 2,
};

enum hsa_amd_link_info_type_t : std::uint32_t {
  HSA_AMD_LINK_INFO_TYPE_HYPERTRANSPORT = 0,
  HSA_AMD_LINK_INFO_TYPE_QPI = 1,
  HSA_AMD_LINK_INFO_TYPE_PCIE = 2,
  HSA_AMD_LINK_INFO_TYPE_INFINBAND = 3,
  HSA_AMD_LINK_INFO_TYPE_XGMI = 4,
};

struct hsa_amd_memory_pool_link_info_t {
  std::uint32_t min_latency;
  std::uint32_t max_latency;
  std::uint32_t min_bandwidth;
  std::uint32_t max_bandwidth;
  bool atomic_support_32bit;
  bool atomic_support_64bit;
  bool coherent_support;
  hsa_amd_link_info_type_t link_type;
  std::uint32_t numa_distance;
};

enum hsa_amd_agent_memory_pool_info_t : std::uint32_t {
  HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS = 0,
  HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS = 1,
  HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO = 2,
};

struct hsa_pitched_ptr_t {
  void* base;
  std::size_t pitch;
  std::size_t slice;
};

enum hsa_amd_copy_direction_t : std::uint32_t {
  hsaHostToHost = 0,
  hsaHostToDevice = 1,
  hsaDeviceToHost = 2,
  hsaDeviceToDevice = 3,
};

enum hsa_amd_pointer_type_t : std::uint32_t {
  HSA_EXT_POINTER_TYPE_UNKNOWN = 0,
  HSA_EXT_POINTER_TYPE_HSA = 1,
  HSA_EXT_POINTER_TYPE_LOCKED = 2,
  HSA_EXT_POINTER_TYPE_GRAPHICS = 3,
  HSA_EXT_POINTER_TYPE_IPC = 4,
  HSA_EXT_POINTER_TYPE_RESERVED_ADDR = 5,
};

struct hsa_amd_pointer_info_t {
  std::uint32_t size;  // in: sizeof; out: bytes filled
  hsa_amd_pointer_type_t type;
  void* agentBaseAddress;
  void* hostBaseAddress;
  std::size_t sizeInBytes;
  void* userData;
  hsa_agent_t agentOwner;
  std::uint32_t global_flags;
};

struct hsa_amd_ipc_memory_t {
  std::uint32_t handle[8];
};
using hsa_amd_ipc_signal_t = hsa_amd_ipc_memory_t;

enum hsa_amd_event_type_t : std::uint32_t {
  HSA_AMD_GPU_MEMORY_FAULT_EVENT = 0,
  HSA_AMD_GPU_HW_EXCEPTION_EVENT = 1,
  HSA_AMD_GPU_MEMORY_ERROR_EVENT = 2,
};

enum hsa_amd_memory_fault_reason_t : std::uint32_t {
  HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT = 1,
  HSA_AMD_MEMORY_FAULT_READ_ONLY = 2,
  HSA_AMD_MEMORY_FAULT_NX = 4,
  HSA_AMD_MEMORY_FAULT_HOST_ONLY = 8,
  HSA_AMD_MEMORY_FAULT_DRAMECC = 16,
  HSA_AMD_MEMORY_FAULT_IMPRECISE = 0x20,
  HSA_AMD_MEMORY_FAULT_SRAMECC = 0x40,
  HSA_AMD_MEMORY_FAULT_HANG = 0x80000000,
};

enum hsa_amd_memory_error_reason_t : std::uint32_t {
  HSA_AMD_MEMORY_ERROR_MEMORY_IN_USE = 1,
};

enum hsa_amd_hw_exception_reset_type_t : std::uint32_t {
  HSA_AMD_HW_EXCEPTION_RESET_TYPE_OTHER = 1,
};

enum hsa_amd_hw_exception_reset_cause_t : std::uint32_t {
  HSA_AMD_HW_EXCEPTION_CAUSE_GPU_HANG = 1,
  HSA_AMD_HW_EXCEPTION_CAUSE_ECC = 2,
};

struct hsa_amd_gpu_memory_fault_info_t {
  hsa_agent_t agent;
  std::uint64_t virtual_address;
  std::uint32_t fault_reason_mask;
};

struct hsa_amd_gpu_memory_error_info_t {
  hsa_agent_t agent;
  std::uint64_t virtual_address;
  std::uint32_t error_reason_mask;
};

struct hsa_amd_gpu_hw_exception_info_t {
  hsa_agent_t agent;
  hsa_amd_hw_exception_reset_type_t reset_type;
  hsa_amd_hw_exception_reset_cause_t reset_cause;
};

struct hsa_amd_event_t {
  hsa_amd_event_type_t event_type;
  union {
    hsa_amd_gpu_memory_fault_info_t memory_fault;
    hsa_amd_gpu_hw_exception_info_t hw_exception;
    hsa_amd_gpu_memory_error_info_t memory_error;
  };
};
using hsa_amd_system_event_callback_t = hsa_status_t (*)(const hsa_amd_event_t* event, void* data);

enum hsa_amd_queue_priority_t : std::uint32_t {
  HSA_AMD_QUEUE_PRIORITY_LOW = 0,
  HSA_AMD_QUEUE_PRIORITY_NORMAL = 1,
  HSA_AMD_QUEUE_PRIORITY_HIGH = 2,
};

using hsa_amd_deallocation_callback_t = void (*)(void* ptr, void* user_data);

enum hsa_amd_svm_model_t : std::uint32_t {
  HSA_AMD_SVM_GLOBAL_FLAG_FINE_GRAINED = 0,
  HSA_AMD_SVM_GLOBAL_FLAG_COARSE_GRAINED = 1,
  HSA_AMD_SVM_GLOBAL_FLAG_INDETERMINATE = 2,
};

enum hsa_amd_svm_attribute_t : std::uint32_t {
  HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG = 0,
  HSA_AMD_SVM_ATTRIB_READ_ONLY = 1,
  HSA_AMD_SVM_ATTRIB_HIVE_LOCAL = 2,
  HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY = 3,
  HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION = 4,
  HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION = 5,
  HSA_AMD_SVM_ATTRIB_READ_MOSTLY = 6,
  HSA_AMD_SVM_ATTRIB_GPU_EXEC = 7,
  HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE = 0x200,
  HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE = 0x201,
  HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS = 0x202,
  HSA_AMD_SVM_ATTRIB_ACCESS_QUERY = 0x203,
};

struct hsa_amd_svm_attribute_pair_t {
  std::uint64_t attribute;
  std::uint64_t value;
};

struct hsa_amd_vmem_alloc_handle_t {
  std::uint64_t handle;
};

enum hsa_amd_memory_type_t : std::uint32_t {
  MEMORY_TYPE_NONE = 0,
  MEMORY_TYPE_PINNED = 1,
};

struct hsa_amd_memory_access_desc_t {
  hsa_access_permission_t permissions;
  hsa_agent_t agent_handle;
};

enum hsa_queue_info_attribute_t : std::uint32_t {
  HSA_AMD_QUEUE_INFO_AGENT = 0,
  HSA_AMD_QUEUE_INFO_DOORBELL_ID = 1,
};

enum hsa_amd_log_flag_t : std::uint32_t {
  HSA_AMD_LOG_FLAG_BLIT_KERNEL_PKTS = 0,
};

// Images: kerncap passes these through and looks into none of them.
struct hsa_ext_image_format_t;
struct hsa_ext_image_descriptor_t;
struct hsa_ext_image_data_info_t;
struct hsa_ext_image_region_t;
struct hsa_ext_sampler_descriptor_t;
struct hsa_ext_sampler_descriptor_v2_t;
struct hsa_amd_image_descriptor_t;
struct hsa_ext_image_t {
  std::uint64_t handle;
};
struct hsa_ext_sampler_t {
  std::uint64_t handle;
};

enum hsa_ext_image_geometry_t : std::uint32_t {};
enum hsa_ext_image_data_layout_t : std::uint32_t {};

}  // namespace kerncap::abi
