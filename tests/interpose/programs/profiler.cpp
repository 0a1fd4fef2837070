// Stands in for a profiler that rocprofiler-register brings in: it is given the table first, makes the
// program's queues intercept queues of its own, and prints how many dispatches went through them.
#include <atomic>
#include <cstdio>
#include <cstring>

#include "abi/hsa_tables.h"

using namespace kerncap::abi;  // NOLINT

namespace {

std::atomic<long> dispatches{0};
decltype(AmdExtTable::hsa_amd_queue_intercept_create_fn) create = nullptr;
decltype(AmdExtTable::hsa_amd_queue_intercept_register_fn) add_handler = nullptr;

void count(const void* packets, std::uint64_t n, std::uint64_t, void*,
           hsa_amd_queue_intercept_packet_writer writer) {
  for (std::uint64_t i = 0; i < n; ++i) {
    std::uint16_t header;
    std::memcpy(&header, static_cast<const char*>(packets) + 64 * i, sizeof header);
    if ((header & 0xff) == HSA_PACKET_TYPE_KERNEL_DISPATCH) ++dispatches;
  }
  writer(packets, n);
}

hsa_status_t queue_create(hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                          void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data,
                          std::uint32_t private_bytes, std::uint32_t group_bytes, hsa_queue_t** queue) {
  const hsa_status_t status = create(agent, size, type, callback, data, private_bytes, group_bytes, queue);
  if (status == HSA_STATUS_SUCCESS) add_handler(*queue, count, nullptr);
  return status;
}

struct AtEnd {
  ~AtEnd() { std::printf("profiler: %ld dispatches\n", dispatches.load()); }
} at_end;

}  // namespace

extern "C" int rocprofiler_set_api_table(const char* name, std::uint64_t, std::uint64_t, void** tables,
                                         std::uint64_t n) {
  if (std::strcmp(name, "hsa") != 0 || n != 1) return 1;
  auto* table = static_cast<HsaApiTable*>(tables[0]);
  create = table->amd_ext_->hsa_amd_queue_intercept_create_fn;
  add_handler = table->amd_ext_->hsa_amd_queue_intercept_register_fn;
  table->core_->hsa_queue_create_fn = queue_create;
  return 0;
}
