// What the runtime, or rocprofiler-register, calls.
//
// ROCr looks for HSA_AMD_TOOL_PRIORITY in every library that is loaded, so LD_PRELOAD is all it takes. While
// a profiler has activated rocprofiler-register, tools are not loaded that way, and the table comes through
// rocprofiler_set_api_table instead: passed on first, patched after, so that both see the program.

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "interpose/hsa/api.h"
#include "interpose/hsa/hooks.h"
#include "interpose/hsa/process.h"

namespace kerncap::interpose {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

// The tables that hold our hooks: handing out the same ones twice must not make us call ourselves.
const CoreApiTable* patched = nullptr;

template <typename Table>
void copy_known(Table& to, const Table& from) {
  to = {};
  std::memcpy(&to, &from, std::min<std::size_t>(from.version.minor_id, sizeof to));
}

bool usable() {
  const Api& a = api();
  return a.core.hsa_queue_create_fn != nullptr && a.core.hsa_memory_copy_fn != nullptr &&
         a.amd.hsa_amd_queue_intercept_create_fn != nullptr &&
         a.amd.hsa_amd_queue_intercept_register_fn != nullptr &&
         a.amd.hsa_amd_signal_async_handler_fn != nullptr &&
         a.amd.hsa_amd_profiling_get_dispatch_time_fn != nullptr;
}

using SetApiTable = int (*)(const char*, std::uint64_t, std::uint64_t, void**, std::uint64_t);

SetApiTable next_set_api_table() {
  constexpr const char* kName = "rocprofiler_set_api_table";
  if (void* next = ::dlsym(RTLD_NEXT, kName)) return reinterpret_cast<SetApiTable>(next);
  const char* named = std::getenv("ROCPROFILER_REGISTER_LIBRARY");
  for (const char* library :
       {named, "librocprofiler-sdk.so", "librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0"}) {
    if (library == nullptr || *library == 0) continue;
    void* handle = ::dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    void* found = handle != nullptr ? ::dlsym(handle, kName) : nullptr;
    if (found != nullptr) return reinterpret_cast<SetApiTable>(found);
  }
  return nullptr;
}

}  // namespace

void install_hooks(HsaApiTable& tables, bool profiler_first) {
  CoreApiTable& core = *tables.core_;
  AmdExtTable& amd = *tables.amd_ext_;
  if (patched == &core && core.hsa_queue_create_fn != api().core.hsa_queue_create_fn) {
    // Only if the entry is still ours; a runtime that started anew has put its own back.
    Dl_info in_table{}, here{};
    if (::dladdr(reinterpret_cast<void*>(core.hsa_queue_create_fn), &in_table) != 0 &&
        ::dladdr(reinterpret_cast<void*>(&install_hooks), &here) != 0 &&
        in_table.dli_fbase == here.dli_fbase) {
      return;
    }
  }
  copy_known(api().core, core);
  copy_known(api().amd, amd);
  if (!usable() || !attach()) return;
  install_memory_hooks(core, amd);
  install_code_hooks(core);
  install_queue_hooks(core, profiler_first);
  patched = &core;
  if (amd.version.minor_id > sizeof(AmdExtTable)) {
    // Counted queues and batched copies of such a runtime would pass by us.
    process()->note(
        "the runtime is newer than this kerncap; work it submits in ways added since is not seen");
  }
}

}  // namespace kerncap::interpose

#define KERNCAP_EXPORT extern "C" __attribute__((visibility("default")))

// Lower goes first; ours looks at what other tools leave.
KERNCAP_EXPORT const std::uint32_t HSA_AMD_TOOL_PRIORITY;
const std::uint32_t HSA_AMD_TOOL_PRIORITY = 100;

KERNCAP_EXPORT bool OnLoad(kerncap::abi::HsaApiTable* table, std::uint64_t, std::uint64_t,
                           const char* const*) {
  const char* session = std::getenv("KERNCAP_SESSION");
  if (session != nullptr && *session != 0 && table != nullptr)
    kerncap::interpose::install_hooks(*table, false);
  return true;
}

KERNCAP_EXPORT void OnUnload() { kerncap::interpose::detach(); }

KERNCAP_EXPORT int rocprofiler_set_api_table(const char* name, std::uint64_t version, std::uint64_t instance,
                                             void** tables, std::uint64_t count) {
  int result = 0;
  if (const auto next = kerncap::interpose::next_set_api_table())
    result = next(name, version, instance, tables, count);
  const char* session = std::getenv("KERNCAP_SESSION");
  if (session != nullptr && *session != 0 && name != nullptr && std::strcmp(name, "hsa") == 0 && count >= 1) {
    kerncap::interpose::install_hooks(*static_cast<kerncap::abi::HsaApiTable*>(tables[0]), true);
  }
  return result;
}
