// What the runtime, or rocprofiler-register, calls.
//
// ROCr looks for HSA_AMD_TOOL_PRIORITY in every library that is loaded, so LD_PRELOAD is all it takes. While
// a profiler has activated rocprofiler-register, tools are not loaded that way, and the table comes through
// rocprofiler_set_api_table instead: passed on first, patched after, so that both see the program.

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "interpose/common/loaded.h"
#include "interpose/common/python_hook.h"
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

// ROCr 5.4 to 6.0 have root tables of majors 1 and 2 with others of major 1; 6.1 to 7 have 3 and 2. Within a
// major, tables only grow at their end.
constexpr std::uint32_t kNewestRoot = 3, kNewestTable = 2;

// Why these tables cannot be used; empty if they can.
std::string unusable(const HsaApiTable& tables) {
  const auto strange = [](const char* name, const ApiTableVersion& version, std::uint32_t newest) {
    if (version.major_id >= 1 && version.major_id <= newest) return std::string();
    return std::string("the runtime's ") + name + " table has version " + std::to_string(version.major_id) +
           ", and this kerncap knows 1 to " + std::to_string(newest);
  };
  if (std::string why = strange("root", tables.version, kNewestRoot); !why.empty()) return why;
  if (tables.core_ == nullptr || tables.amd_ext_ == nullptr)
    return "the runtime hands out no core or AMD table";
  if (std::string why = strange("core", tables.core_->version, kNewestTable); !why.empty()) return why;
  if (std::string why = strange("AMD", tables.amd_ext_->version, kNewestTable); !why.empty()) return why;
  CoreApiTable core;
  AmdExtTable amd;
  copy_known(core, *tables.core_);
  copy_known(amd, *tables.amd_ext_);
  const std::pair<const char*, bool> needed[] = {
      {"hsa_system_get_info", core.hsa_system_get_info_fn != nullptr},
      {"hsa_queue_create", core.hsa_queue_create_fn != nullptr},
      {"hsa_queue_destroy", core.hsa_queue_destroy_fn != nullptr},
      {"hsa_memory_copy", core.hsa_memory_copy_fn != nullptr},
      {"hsa_signal_create", core.hsa_signal_create_fn != nullptr},
      {"hsa_amd_queue_intercept_create", amd.hsa_amd_queue_intercept_create_fn != nullptr},
      {"hsa_amd_queue_intercept_register", amd.hsa_amd_queue_intercept_register_fn != nullptr},
      {"hsa_amd_signal_async_handler", amd.hsa_amd_signal_async_handler_fn != nullptr},
      {"hsa_amd_profiling_set_profiler_enabled", amd.hsa_amd_profiling_set_profiler_enabled_fn != nullptr},
      {"hsa_amd_profiling_get_dispatch_time", amd.hsa_amd_profiling_get_dispatch_time_fn != nullptr},
      {"hsa_amd_memory_pool_allocate", amd.hsa_amd_memory_pool_allocate_fn != nullptr},
      {"hsa_amd_memory_pool_free", amd.hsa_amd_memory_pool_free_fn != nullptr},
  };
  for (const auto& [name, there] : needed) {
    if (!there) return std::string("the runtime's tables have no ") + name;
  }
  return {};
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
  if (const std::string why = unusable(tables); !why.empty()) {
    if (attach()) process()->warn("not watching this process: " + why);
    return;
  }
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
  if (!attach()) return;
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

namespace {

// The library is preloaded: this runs before main, and so before Python starts.
[[gnu::constructor]] void at_load() {
  kerncap::interpose::note_loaded();
  kerncap::interpose::watch_python();
}

// What was loaded meanwhile: by Python's ctypes, for instance.
[[gnu::destructor]] void at_exit() { kerncap::interpose::note_loaded(); }

}  // namespace

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
  if (session != nullptr && *session != 0 && name != nullptr && std::strcmp(name, "hsa") == 0 && count >= 1 &&
      tables != nullptr && tables[0] != nullptr) {
    kerncap::interpose::install_hooks(*static_cast<kerncap::abi::HsaApiTable*>(tables[0]), true);
  }
  return result;
}
