// A tool. Built with different names and priorities; it writes what happens to it to the file
// KERNCAP_TEST_LOG.
#include <cstdio>
#include <cstdlib>

#include "abi/hsa.h"

using namespace kerncap::abi;  // NOLINT

#ifndef NAME
#define NAME "tool"
#endif
#ifndef RESULT
#define RESULT true
#endif

#ifdef PRIORITY
extern "C" __attribute__((visibility("default"))) const std::uint32_t HSA_AMD_TOOL_PRIORITY = PRIORITY;
#endif

namespace {

void log(const char* what) {
  if (FILE* file = std::fopen(std::getenv("KERNCAP_TEST_LOG"), "a")) {
    std::fprintf(file, "%s %s\n", NAME, what);
    std::fclose(file);
  }
}

decltype(CoreApiTable::hsa_queue_create_fn) g_queue_create;
AmdExtTable* g_amd;

hsa_status_t queue_create(hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                          void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data,
                          std::uint32_t private_size, std::uint32_t group_size, hsa_queue_t** queue) {
  log("queue_create");
  return g_queue_create(agent, size, type, callback, data, private_size, group_size, queue);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) bool OnLoad(HsaApiTable* table, std::uint64_t version,
                                                              std::uint64_t failed,
                                                              const char* const* names) {
  log("OnLoad");
  if (version != table->version.major_id || (failed != 0 && names[0] == nullptr)) log("wrong arguments");
  if (failed != 0) log("someone failed");
  std::uint32_t agents = 0;
  table->core_->hsa_iterate_agents_fn(
      [](hsa_agent_t, void* count) {
        ++*static_cast<std::uint32_t*>(count);
        return HSA_STATUS_SUCCESS;
      },
      &agents);
  if (agents < 2) log("no agents in OnLoad");
  void* reserved = nullptr;
  if (table->amd_ext_->hsa_amd_vmem_address_reserve_fn(&reserved, 4096, 0, 0) == HSA_STATUS_SUCCESS)
    log("vmem in OnLoad");
  g_amd = table->amd_ext_;
  g_queue_create = table->core_->hsa_queue_create_fn;
  table->core_->hsa_queue_create_fn = queue_create;
  return RESULT;
}

extern "C" __attribute__((visibility("default"))) void OnUnload() { log("OnUnload"); }
