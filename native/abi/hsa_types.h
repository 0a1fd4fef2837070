// The core HSA runtime ABI (HSA Runtime 1.2): status codes, signals, agents, queues, AQL packets.
//
// These are our own declarations, under AMD's names in our own namespace, so that one translation unit can
// hold these and AMD's headers. Enumerations have a fixed 32-bit type, as a C enum has on Linux x86-64;
// AMD's extension values are part of the enumeration they extend, so no casts are needed.
// tests/abi compares all of it with AMD's headers where those are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kerncap::abi {

enum hsa_status_t : std::uint32_t {
  HSA_STATUS_SUCCESS = 0,
  HSA_STATUS_INFO_BREAK = 1,
  HSA_STATUS_ERROR = 0x1000,
  HSA_STATUS_ERROR_INVALID_ARGUMENT = 0x1001,
  HSA_STATUS_ERROR_INVALID_QUEUE_CREATION = 0x1002,
  HSA_STATUS_ERROR_INVALID_ALLOCATION = 0x1003,
  HSA_STATUS_ERROR_INVALID_AGENT = 0x1004,
  HSA_STATUS_ERROR_INVALID_REGION = 0x1005,
  HSA_STATUS_ERROR_INVALID_SIGNAL = 0x1006,
  HSA_STATUS_ERROR_INVALID_QUEUE = 0x1007,
  HSA_STATUS_ERROR_OUT_OF_RESOURCES = 0x1008,
  HSA_STATUS_ERROR_INVALID_PACKET_FORMAT = 0x1009,
  HSA_STATUS_ERROR_RESOURCE_FREE = 0x100a,
  HSA_STATUS_ERROR_NOT_INITIALIZED = 0x100b,
  HSA_STATUS_ERROR_REFCOUNT_OVERFLOW = 0x100c,
  HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS = 0x100d,
  HSA_STATUS_ERROR_INVALID_INDEX = 0x100e,
  HSA_STATUS_ERROR_INVALID_ISA = 0x100f,
  HSA_STATUS_ERROR_INVALID_ISA_NAME = 0x1017,
  HSA_STATUS_ERROR_INVALID_CODE_OBJECT = 0x1010,
  HSA_STATUS_ERROR_INVALID_EXECUTABLE = 0x1011,
  HSA_STATUS_ERROR_FROZEN_EXECUTABLE = 0x1012,
  HSA_STATUS_ERROR_INVALID_SYMBOL_NAME = 0x1013,
  HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED = 0x1014,
  HSA_STATUS_ERROR_VARIABLE_UNDEFINED = 0x1015,
  HSA_STATUS_ERROR_EXCEPTION = 0x1016,
  HSA_STATUS_ERROR_INVALID_CODE_SYMBOL = 0x1018,
  HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL = 0x1019,
  HSA_STATUS_ERROR_INVALID_FILE = 0x1020,
  HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER = 0x1021,
  HSA_STATUS_ERROR_INVALID_CACHE = 0x1022,
  HSA_STATUS_ERROR_INVALID_WAVEFRONT = 0x1023,
  HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP = 0x1024,
  HSA_STATUS_ERROR_INVALID_RUNTIME_STATE = 0x1025,
  HSA_STATUS_ERROR_FATAL = 0x1026,
  HSA_STATUS_ERROR_INVALID_MEMORY_POOL = 0x28,
  HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION = 0x29,
  HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION = 0x2a,
  HSA_STATUS_ERROR_MEMORY_FAULT = 0x2b,
  HSA_STATUS_CU_MASK_REDUCED = 0x2c,
  HSA_STATUS_ERROR_OUT_OF_REGISTERS = 0x2d,
  HSA_STATUS_ERROR_RESOURCE_BUSY = 0x2e,
  HSA_EXT_STATUS_ERROR_IMAGE_FORMAT_UNSUPPORTED = 0x3000,
  HSA_EXT_STATUS_ERROR_IMAGE_SIZE_UNSUPPORTED = 0x3001,
  HSA_EXT_STATUS_ERROR_IMAGE_PITCH_UNSUPPORTED = 0x3002,
  HSA_EXT_STATUS_ERROR_SAMPLER_DESCRIPTOR_UNSUPPORTED = 0x3003,
};

enum hsa_access_permission_t : std::uint32_t {
  HSA_ACCESS_PERMISSION_NONE = 0,
  HSA_ACCESS_PERMISSION_RO = 1,
  HSA_ACCESS_PERMISSION_WO = 2,
  HSA_ACCESS_PERMISSION_RW = 3,
};

enum hsa_endianness_t : std::uint32_t {
  HSA_ENDIANNESS_LITTLE = 0,
  HSA_ENDIANNESS_BIG = 1,
};

enum hsa_machine_model_t : std::uint32_t {
  HSA_MACHINE_MODEL_SMALL = 0,
  HSA_MACHINE_MODEL_LARGE = 1,
};

enum hsa_profile_t : std::uint32_t {
  HSA_PROFILE_BASE = 0,
  HSA_PROFILE_FULL = 1,
};

enum hsa_default_float_rounding_mode_t : std::uint32_t {
  HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT = 0,
  HSA_DEFAULT_FLOAT_ROUNDING_MODE_ZERO = 1,
  HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR = 2,
};

enum hsa_device_type_t : std::uint32_t {
  HSA_DEVICE_TYPE_CPU = 0,
  HSA_DEVICE_TYPE_GPU = 1,
  HSA_DEVICE_TYPE_DSP = 2,
  HSA_DEVICE_TYPE_AIE = 3,
};

enum hsa_agent_feature_t : std::uint32_t {
  HSA_AGENT_FEATURE_KERNEL_DISPATCH = 1,
  HSA_AGENT_FEATURE_AGENT_DISPATCH = 2,
};

enum hsa_exception_policy_t : std::uint32_t {
  HSA_EXCEPTION_POLICY_BREAK = 1,
  HSA_EXCEPTION_POLICY_DETECT = 2,
};

enum hsa_system_info_t : std::uint32_t {
  HSA_SYSTEM_INFO_VERSION_MAJOR = 0,
  HSA_SYSTEM_INFO_VERSION_MINOR = 1,
  HSA_SYSTEM_INFO_TIMESTAMP = 2,
  HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY = 3,
  HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT = 4,
  HSA_SYSTEM_INFO_ENDIANNESS = 5,
  HSA_SYSTEM_INFO_MACHINE_MODEL = 6,
  HSA_SYSTEM_INFO_EXTENSIONS = 7,
  HSA_AMD_SYSTEM_INFO_BUILD_VERSION = 0x200,
  HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED = 0x201,
  HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT = 0x202,
  HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED = 0x203,
  HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED = 0x204,
  HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED = 0x205,
  HSA_AMD_SYSTEM_INFO_XNACK_ENABLED = 0x206,
  HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR = 0x207,
  HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR = 0x208,
};

enum hsa_extension_t : std::uint32_t {
  HSA_EXTENSION_FINALIZER = 0,
  HSA_EXTENSION_IMAGES = 1,
  HSA_EXTENSION_PERFORMANCE_COUNTERS = 2,
  HSA_EXTENSION_PROFILING_EVENTS = 3,
  HSA_EXTENSION_STD_LAST = 3,
  HSA_AMD_FIRST_EXTENSION = 0x200,
  HSA_EXTENSION_AMD_PROFILER = 0x200,
  HSA_EXTENSION_AMD_LOADER = 0x201,
  HSA_EXTENSION_AMD_AQLPROFILE = 0x202,
  HSA_EXTENSION_AMD_PC_SAMPLING = 0x203,
  HSA_AMD_LAST_EXTENSION = 0x203,
};

enum hsa_agent_info_t : std::uint32_t {
  HSA_AGENT_INFO_NAME = 0,
  HSA_AGENT_INFO_VENDOR_NAME = 1,
  HSA_AGENT_INFO_FEATURE = 2,
  HSA_AGENT_INFO_MACHINE_MODEL = 3,
  HSA_AGENT_INFO_PROFILE = 4,
  HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE = 5,
  HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES = 23,
  HSA_AGENT_INFO_FAST_F16_OPERATION = 24,
  HSA_AGENT_INFO_WAVEFRONT_SIZE = 6,
  HSA_AGENT_INFO_WORKGROUP_MAX_DIM = 7,
  HSA_AGENT_INFO_WORKGROUP_MAX_SIZE = 8,
  HSA_AGENT_INFO_GRID_MAX_DIM = 9,
  HSA_AGENT_INFO_GRID_MAX_SIZE = 10,
  HSA_AGENT_INFO_FBARRIER_MAX_SIZE = 11,
  HSA_AGENT_INFO_QUEUES_MAX = 12,
  HSA_AGENT_INFO_QUEUE_MIN_SIZE = 13,
  HSA_AGENT_INFO_QUEUE_MAX_SIZE = 14,
  HSA_AGENT_INFO_QUEUE_TYPE = 15,
  HSA_AGENT_INFO_NODE = 16,
  HSA_AGENT_INFO_DEVICE = 17,
  HSA_AGENT_INFO_CACHE_SIZE = 18,
  HSA_AGENT_INFO_ISA = 19,
  HSA_AGENT_INFO_EXTENSIONS = 20,
  HSA_AGENT_INFO_VERSION_MAJOR = 21,
  HSA_AGENT_INFO_VERSION_MINOR = 22,
  HSA_EXT_AGENT_INFO_IMAGE_1D_MAX_ELEMENTS = 0x3000,
  HSA_EXT_AGENT_INFO_IMAGE_1DA_MAX_ELEMENTS = 0x3001,
  HSA_EXT_AGENT_INFO_IMAGE_1DB_MAX_ELEMENTS = 0x3002,
  HSA_EXT_AGENT_INFO_IMAGE_2D_MAX_ELEMENTS = 0x3003,
  HSA_EXT_AGENT_INFO_IMAGE_2DA_MAX_ELEMENTS = 0x3004,
  HSA_EXT_AGENT_INFO_IMAGE_2DDEPTH_MAX_ELEMENTS = 0x3005,
  HSA_EXT_AGENT_INFO_IMAGE_2DADEPTH_MAX_ELEMENTS = 0x3006,
  HSA_EXT_AGENT_INFO_IMAGE_3D_MAX_ELEMENTS = 0x3007,
  HSA_EXT_AGENT_INFO_IMAGE_ARRAY_MAX_LAYERS = 0x3008,
  HSA_EXT_AGENT_INFO_MAX_IMAGE_RD_HANDLES = 0x3009,
  HSA_EXT_AGENT_INFO_MAX_IMAGE_RORW_HANDLES = 0x300a,
  HSA_EXT_AGENT_INFO_MAX_SAMPLER_HANDLERS = 0x300b,
  HSA_EXT_AGENT_INFO_IMAGE_LINEAR_ROW_PITCH_ALIGNMENT = 0x300c,
  HSA_AMD_AGENT_INFO_CHIP_ID = 0xa000,
  HSA_AMD_AGENT_INFO_CACHELINE_SIZE = 0xa001,
  HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT = 0xa002,
  HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY = 0xa003,
  HSA_AMD_AGENT_INFO_DRIVER_NODE_ID = 0xa004,
  HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS = 0xa005,
  HSA_AMD_AGENT_INFO_BDFID = 0xa006,
  HSA_AMD_AGENT_INFO_MEMORY_WIDTH = 0xa007,
  HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY = 0xa008,
  HSA_AMD_AGENT_INFO_PRODUCT_NAME = 0xa009,
  HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU = 0xa00a,
  HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU = 0xa00b,
  HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES = 0xa00c,
  HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE = 0xa00d,
  HSA_AMD_AGENT_INFO_HDP_FLUSH = 0xa00e,
  HSA_AMD_AGENT_INFO_DOMAIN = 0xa00f,
  HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES = 0xa010,
  HSA_AMD_AGENT_INFO_UUID = 0xa011,
  HSA_AMD_AGENT_INFO_ASIC_REVISION = 0xa012,
  HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS = 0xa013,
  HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT = 0xa014,
  HSA_AMD_AGENT_INFO_MEMORY_AVAIL = 0xa015,
  HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY = 0xa016,
  HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID = 0xa107,
  HSA_AMD_AGENT_INFO_UCODE_VERSION = 0xa108,
  HSA_AMD_AGENT_INFO_SDMA_UCODE_VERSION = 0xa109,
  HSA_AMD_AGENT_INFO_NUM_SDMA_ENG = 0xa10a,
  HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG = 0xa10b,
  HSA_AMD_AGENT_INFO_IOMMU_SUPPORT = 0xa110,
  HSA_AMD_AGENT_INFO_NUM_XCC = 0xa111,
  HSA_AMD_AGENT_INFO_DRIVER_UID = 0xa112,
  HSA_AMD_AGENT_INFO_NEAREST_CPU = 0xa113,
  HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES = 0xa114,
  HSA_AMD_AGENT_INFO_AQL_EXTENSIONS = 0xa115,
  HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_MAX = 0xa116,
  HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_CURRENT = 0xa117,
};

using hsa_amd_agent_info_t = hsa_agent_info_t;

enum hsa_cache_info_t : std::uint32_t {
  HSA_CACHE_INFO_NAME_LENGTH = 0,
  HSA_CACHE_INFO_NAME = 1,
  HSA_CACHE_INFO_LEVEL = 2,
  HSA_CACHE_INFO_SIZE = 3,
};

struct hsa_agent_t {
  std::uint64_t handle;
};
struct hsa_cache_t {
  std::uint64_t handle;
};
struct hsa_signal_t {
  std::uint64_t handle;
};
struct hsa_signal_group_t {
  std::uint64_t handle;
};
struct hsa_region_t {
  std::uint64_t handle;
};

struct hsa_dim3_t {
  std::uint32_t x;
  std::uint32_t y;
  std::uint32_t z;
};

using hsa_file_t = int;
using hsa_signal_value_t = std::int64_t;

enum hsa_signal_condition_t : std::uint32_t {
  HSA_SIGNAL_CONDITION_EQ = 0,
  HSA_SIGNAL_CONDITION_NE = 1,
  HSA_SIGNAL_CONDITION_LT = 2,
  HSA_SIGNAL_CONDITION_GTE = 3,
};

enum hsa_wait_state_t : std::uint32_t {
  HSA_WAIT_STATE_BLOCKED = 0,
  HSA_WAIT_STATE_ACTIVE = 1,
};

enum hsa_queue_type_t : std::uint32_t {
  HSA_QUEUE_TYPE_MULTI = 0,
  HSA_QUEUE_TYPE_SINGLE = 1,
  HSA_QUEUE_TYPE_COOPERATIVE = 2,
};

enum hsa_queue_feature_t : std::uint32_t {
  HSA_QUEUE_FEATURE_KERNEL_DISPATCH = 1,
  HSA_QUEUE_FEATURE_AGENT_DISPATCH = 2,
};

using hsa_queue_type32_t = std::uint32_t;
using hsa_signal_condition32_t = std::uint32_t;

struct hsa_queue_t {
  hsa_queue_type32_t type;
  std::uint32_t features;
  void* base_address;  // ring of 64-byte packets
  hsa_signal_t doorbell_signal;
  std::uint32_t size;  // packets, a power of two
  std::uint32_t reserved1;
  std::uint64_t id;  // unique in the process
};

enum hsa_packet_type_t : std::uint32_t {
  HSA_PACKET_TYPE_VENDOR_SPECIFIC = 0,
  HSA_PACKET_TYPE_INVALID = 1,
  HSA_PACKET_TYPE_KERNEL_DISPATCH = 2,
  HSA_PACKET_TYPE_BARRIER_AND = 3,
  HSA_PACKET_TYPE_AGENT_DISPATCH = 4,
  HSA_PACKET_TYPE_BARRIER_OR = 5,
};

enum hsa_fence_scope_t : std::uint32_t {
  HSA_FENCE_SCOPE_NONE = 0,
  HSA_FENCE_SCOPE_AGENT = 1,
  HSA_FENCE_SCOPE_SYSTEM = 2,
};

enum hsa_packet_header_t : std::uint32_t {
  HSA_PACKET_HEADER_TYPE = 0,
  HSA_PACKET_HEADER_BARRIER = 8,
  HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE = 9,
  HSA_PACKET_HEADER_ACQUIRE_FENCE_SCOPE = 9,
  HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE = 11,
  HSA_PACKET_HEADER_RELEASE_FENCE_SCOPE = 11,
};

enum hsa_packet_header_width_t : std::uint32_t {
  HSA_PACKET_HEADER_WIDTH_TYPE = 8,
  HSA_PACKET_HEADER_WIDTH_BARRIER = 1,
  HSA_PACKET_HEADER_WIDTH_SCACQUIRE_FENCE_SCOPE = 2,
  HSA_PACKET_HEADER_WIDTH_ACQUIRE_FENCE_SCOPE = 2,
  HSA_PACKET_HEADER_WIDTH_SCRELEASE_FENCE_SCOPE = 2,
  HSA_PACKET_HEADER_WIDTH_RELEASE_FENCE_SCOPE = 2,
};

enum hsa_kernel_dispatch_packet_setup_t : std::uint32_t {
  HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS = 0,
};

enum hsa_kernel_dispatch_packet_setup_width_t : std::uint32_t {
  HSA_KERNEL_DISPATCH_PACKET_SETUP_WIDTH_DIMENSIONS = 2,
};

struct hsa_kernel_dispatch_packet_t {
  std::uint16_t header;
  std::uint16_t setup;
  std::uint16_t workgroup_size_x;
  std::uint16_t workgroup_size_y;
  std::uint16_t workgroup_size_z;
  std::uint16_t reserved0;
  std::uint32_t grid_size_x;  // work-items, not workgroups
  std::uint32_t grid_size_y;
  std::uint32_t grid_size_z;
  std::uint32_t private_segment_size;  // bytes a work-item
  std::uint32_t group_segment_size;    // bytes a workgroup
  std::uint64_t kernel_object;         // address of the kernel descriptor
  void* kernarg_address;
  std::uint64_t reserved2;
  hsa_signal_t completion_signal;
};

struct hsa_agent_dispatch_packet_t {
  std::uint16_t header;
  std::uint16_t type;
  std::uint32_t reserved0;
  void* return_address;
  std::uint64_t arg[4];
  std::uint64_t reserved2;
  hsa_signal_t completion_signal;
};

struct hsa_barrier_and_packet_t {
  std::uint16_t header;
  std::uint16_t reserved0;
  std::uint32_t reserved1;
  hsa_signal_t dep_signal[5];
  std::uint64_t reserved2;
  hsa_signal_t completion_signal;
};

// Laid out as the barrier-AND packet.
struct hsa_barrier_or_packet_t {
  std::uint16_t header;
  std::uint16_t reserved0;
  std::uint32_t reserved1;
  hsa_signal_t dep_signal[5];
  std::uint64_t reserved2;
  hsa_signal_t completion_signal;
};

static_assert(sizeof(hsa_queue_t) == 40);
static_assert(sizeof(hsa_kernel_dispatch_packet_t) == 64);
static_assert(sizeof(hsa_agent_dispatch_packet_t) == 64);
static_assert(sizeof(hsa_barrier_and_packet_t) == 64);

}  // namespace kerncap::abi
