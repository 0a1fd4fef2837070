// The tables of function pointers that a tool's OnLoad receives (HsaApiTable). A tool replaces entries in the
// live tables; the runtime calls through them.
#pragma once

#include "abi/hsa_amd_list.h"
#include "abi/hsa_amd_types.h"
#include "abi/hsa_core_list.h"
#include "abi/hsa_image_list.h"

namespace kerncap::abi {

// First member of every table. minor_id is the size in bytes of the table as the runtime built it, so it
// says which of the later entries are there.
struct ApiTableVersion {
  std::uint32_t major_id;
  std::uint32_t minor_id;
  std::uint32_t step_id;
  std::uint32_t reserved;
};
static_assert(sizeof(ApiTableVersion) == 16);

// Intercept queues: only reachable through AmdExtTable, the runtime exports none of the three.
using hsa_amd_queue_intercept_packet_writer = void (*)(const void* pkts, std::uint64_t pkt_count);
using hsa_amd_queue_intercept_handler = void (*)(const void* pkts, std::uint64_t pkt_count,
                                                 std::uint64_t user_pkt_index, void* data,
                                                 hsa_amd_queue_intercept_packet_writer writer);
using hsa_amd_runtime_queue_notifier = void (*)(const hsa_queue_t* queue, hsa_agent_t agent, void* data);

// Vendor packet of format 0xFE: never reaches the hardware queue; its callback is told the id that the packet
// after it gets there.
inline constexpr std::uint32_t AMD_AQL_FORMAT_INTERCEPT_MARKER = 0xFE;
struct amd_aql_intercept_marker_t {
  std::uint16_t header;
  std::uint8_t format;
  std::uint8_t reserved[5];
  void (*callback)(const amd_aql_intercept_marker_t* packet, hsa_queue_t* queue, std::uint64_t packet_id);
  std::uint64_t user_data[6];
};
static_assert(sizeof(amd_aql_intercept_marker_t) == 64);

#define KERNCAP_HSA_TABLE_ENTRY(ret, name, params, args) ret(*name##_fn) params;

struct CoreApiTable {
  ApiTableVersion version;
  KERNCAP_HSA_CORE_FUNCTIONS(KERNCAP_HSA_TABLE_ENTRY)
};

struct AmdExtTable {
  ApiTableVersion version;
  KERNCAP_HSA_AMD_FUNCTIONS(KERNCAP_HSA_TABLE_ENTRY)
};

struct ImageExtTable {
  ApiTableVersion version;
  KERNCAP_HSA_IMAGE_FUNCTIONS(KERNCAP_HSA_TABLE_ENTRY)
};

#undef KERNCAP_HSA_TABLE_ENTRY

// HSAIL's finalizer, gone from the runtime since code object v2: the slots remain.
struct FinalizerExtTable {
  ApiTableVersion version;
  void* hsa_ext_program_create_fn;
  void* hsa_ext_program_destroy_fn;
  void* hsa_ext_program_add_module_fn;
  void* hsa_ext_program_iterate_modules_fn;
  void* hsa_ext_program_get_info_fn;
  void* hsa_ext_program_finalize_fn;
};

// Called by the runtime when it resizes scratch memory. The argument is a pointer to an event structure.
using hsa_amd_tool_event = hsa_status_t (*)(const void* event);

struct ToolsApiTable {
  ApiTableVersion version;
  hsa_amd_tool_event hsa_amd_tool_scratch_event_alloc_start_fn;
  hsa_amd_tool_event hsa_amd_tool_scratch_event_alloc_end_fn;
  hsa_amd_tool_event hsa_amd_tool_scratch_event_free_start_fn;
  hsa_amd_tool_event hsa_amd_tool_scratch_event_free_end_fn;
  hsa_amd_tool_event hsa_amd_tool_scratch_event_async_reclaim_start_fn;
  hsa_amd_tool_event hsa_amd_tool_scratch_event_async_reclaim_end_fn;
};

struct PcSamplingExtTable {
  ApiTableVersion version;
  void* hsa_ven_amd_pcs_iterate_configuration_fn;
  void* hsa_ven_amd_pcs_create_fn;
  void* hsa_ven_amd_pcs_create_from_id_fn;
  void* hsa_ven_amd_pcs_destroy_fn;
  void* hsa_ven_amd_pcs_start_fn;
  void* hsa_ven_amd_pcs_stop_fn;
  void* hsa_ven_amd_pcs_flush_fn;
};

struct HsaApiTable {
  ApiTableVersion version;
  CoreApiTable* core_;
  AmdExtTable* amd_ext_;
  FinalizerExtTable* finalizer_ext_;
  ImageExtTable* image_ext_;
  ToolsApiTable* tools_;                 // ROCr 6.1 and later
  PcSamplingExtTable* pc_sampling_ext_;  // ROCr 6.2 and later
};
static_assert(sizeof(CoreApiTable) == 16 + 8 * 125);
static_assert(sizeof(AmdExtTable) == 16 + 8 * 74);
static_assert(sizeof(HsaApiTable) == 64);

// Whether a table that the runtime built holds the member at `offset` (a pointer), and it is set:
//   table_has(*root->amd_ext_, offsetof(AmdExtTable, hsa_amd_vmem_map_fn))
template <typename Table>
bool table_has(const Table& table, std::size_t offset) {
  if (offset + sizeof(void*) > table.version.minor_id) return false;
  return *reinterpret_cast<void* const*>(reinterpret_cast<const char*>(&table) + offset) != nullptr;
}

// A tool's entry points. OnLoad returning false makes the runtime close the tool.
using OnLoadFunction = bool (*)(HsaApiTable* table, std::uint64_t runtime_version,
                                std::uint64_t failed_tool_count, const char* const* failed_tool_names);
using OnUnloadFunction = void (*)();

}  // namespace kerncap::abi
