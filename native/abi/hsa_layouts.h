// Structures that lie behind HSA handles, at offsets that AMD's HIP, command processors and compiled kernels
// rely on: the signal, the queue, and the kernel descriptor of a code object.
#pragma once

#include "abi/hsa_types.h"

namespace kerncap::abi {

enum amd_signal_kind_t : std::int64_t {
  AMD_SIGNAL_KIND_INVALID = 0,
  AMD_SIGNAL_KIND_USER = 1,
  AMD_SIGNAL_KIND_DOORBELL = -1,
  AMD_SIGNAL_KIND_LEGACY_DOORBELL = -2,
};

struct amd_queue_v2_t;

// What hsa_signal_t::handle points to.
struct alignas(64) amd_signal_t {
  std::int64_t kind;  // amd_signal_kind_t
  union {
    volatile std::int64_t value;
    volatile std::uint32_t* legacy_hardware_doorbell_ptr;
    volatile std::uint64_t* hardware_doorbell_ptr;
  };
  std::uint64_t event_mailbox_ptr;
  std::uint32_t event_id;
  std::uint32_t reserved1;
  std::uint64_t start_ts;  // ticks of the agent's clock
  std::uint64_t end_ts;
  union {
    amd_queue_v2_t* queue_ptr;
    std::uint64_t reserved2;
  };
  std::uint32_t reserved3[2];
};
static_assert(sizeof(amd_signal_t) == 64);

enum amd_queue_properties_t : std::uint32_t {
  AMD_QUEUE_PROPERTIES_ENABLE_TRAP_HANDLER = 1,
  AMD_QUEUE_PROPERTIES_IS_PTR64 = 2,
  AMD_QUEUE_PROPERTIES_ENABLE_TRAP_HANDLER_DEBUG_SGPRS = 4,
  AMD_QUEUE_PROPERTIES_ENABLE_PROFILING = 8,
  AMD_QUEUE_PROPERTIES_USE_SCRATCH_ONCE = 16,
};

struct scratch_last_used_index_xcc_t {
  volatile std::uint64_t main;
  volatile std::uint64_t alt;
};

// What hsa_queue_t* points to. The first 192 bytes are also the older amd_queue_t.
struct alignas(64) amd_queue_v2_t {
  hsa_queue_t hsa_queue;
  std::uint32_t caps;
  std::uint32_t reserved1[3];
  volatile std::uint64_t write_dispatch_id;
  std::uint32_t group_segment_aperture_base_hi;
  std::uint32_t private_segment_aperture_base_hi;
  std::uint32_t max_cu_id;
  std::uint32_t max_wave_id;
  volatile std::uint64_t max_legacy_doorbell_dispatch_id_plus_1;
  volatile std::uint32_t legacy_doorbell_lock;
  std::uint32_t reserved2[9];
  volatile std::uint64_t read_dispatch_id;
  std::uint32_t read_dispatch_id_field_base_byte_offset;
  std::uint32_t compute_tmpring_size;
  std::uint32_t scratch_resource_descriptor[4];
  std::uint64_t scratch_backing_memory_location;
  std::uint64_t scratch_backing_memory_byte_size;
  std::uint32_t scratch_wave64_lane_byte_size;
  std::uint32_t queue_properties;  // amd_queue_properties_t
  volatile std::uint64_t scratch_max_use_index;
  hsa_signal_t queue_inactive_signal;
  volatile std::uint64_t alt_scratch_max_use_index;
  std::uint32_t alt_scratch_resource_descriptor[4];
  std::uint64_t alt_scratch_backing_memory_location;
  std::uint32_t alt_scratch_dispatch_limit_x;
  std::uint32_t alt_scratch_dispatch_limit_y;
  std::uint32_t alt_scratch_dispatch_limit_z;
  std::uint32_t alt_scratch_wave64_lane_byte_size;
  std::uint32_t alt_compute_tmpring_size;
  std::uint32_t reserved5;
  scratch_last_used_index_xcc_t scratch_last_used_index[128];
};
static_assert(offsetof(amd_queue_v2_t, write_dispatch_id) == 56);
static_assert(offsetof(amd_queue_v2_t, group_segment_aperture_base_hi) == 64);
static_assert(offsetof(amd_queue_v2_t, read_dispatch_id) == 128);
static_assert(sizeof(amd_queue_v2_t) == 2304);

// LLVM AMDGPUUsage, "Kernel Descriptor" (code object v3 and later). A packet's kernel_object is its address.
struct alignas(64) amd_kernel_descriptor_t {
  std::uint32_t group_segment_fixed_size;
  std::uint32_t private_segment_fixed_size;
  std::uint32_t kernarg_size;
  std::uint8_t reserved0[4];
  std::int64_t kernel_code_entry_byte_offset;  // from the descriptor's own address
  std::uint8_t reserved1[20];
  std::uint32_t compute_pgm_rsrc3;
  std::uint32_t compute_pgm_rsrc1;
  std::uint32_t compute_pgm_rsrc2;
  std::uint16_t kernel_code_properties;  // amd_kernel_code_property_t
  std::uint16_t kernarg_preload;         // length in dwords: bits 6:0, offset in dwords: bits 15:7
  std::uint8_t reserved3[4];
};
static_assert(offsetof(amd_kernel_descriptor_t, kernel_code_entry_byte_offset) == 16);
static_assert(offsetof(amd_kernel_descriptor_t, compute_pgm_rsrc3) == 44);
static_assert(offsetof(amd_kernel_descriptor_t, kernel_code_properties) == 56);
static_assert(sizeof(amd_kernel_descriptor_t) == 64);

enum amd_kernel_code_property_t : std::uint16_t {
  AMD_KERNEL_CODE_PROPERTY_PRIVATE_SEGMENT_BUFFER = 1 << 0,
  AMD_KERNEL_CODE_PROPERTY_DISPATCH_PTR = 1 << 1,
  AMD_KERNEL_CODE_PROPERTY_QUEUE_PTR = 1 << 2,
  AMD_KERNEL_CODE_PROPERTY_KERNARG_SEGMENT_PTR = 1 << 3,
  AMD_KERNEL_CODE_PROPERTY_DISPATCH_ID = 1 << 4,
  AMD_KERNEL_CODE_PROPERTY_FLAT_SCRATCH_INIT = 1 << 5,
  AMD_KERNEL_CODE_PROPERTY_PRIVATE_SEGMENT_SIZE = 1 << 6,
  AMD_KERNEL_CODE_PROPERTY_WAVEFRONT_SIZE32 = 1 << 10,
  AMD_KERNEL_CODE_PROPERTY_USES_DYNAMIC_STACK = 1 << 11,
};

}  // namespace kerncap::abi
