#include "sim/hsa/tools.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "sim/hsa/api_tables.h"
#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

struct Tool {
  void* library;
  std::uint32_t priority;
  std::string name;
};

std::vector<Tool>& loaded_tools() {
  static auto* tools = new std::vector<Tool>;
  return *tools;
}

bool is_true(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

std::vector<std::string> loaded_library_names() {
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        if (info->dlpi_name != nullptr && *info->dlpi_name != '\0')
          static_cast<std::vector<std::string>*>(data)->emplace_back(info->dlpi_name);
        return 0;
      },
      &names);
  return names;
}

// The library's own HSA_AMD_TOOL_PRIORITY: dlsym on a handle also finds the symbols of what it depends on.
const std::uint32_t* own_priority(void* library) {
  void* symbol = dlsym(library, "HSA_AMD_TOOL_PRIORITY");
  if (symbol == nullptr) return nullptr;
  Dl_info where{};
  link_map* map = nullptr;
  if (dladdr(symbol, &where) == 0 || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return nullptr;
  link_map* defined_in = nullptr;
  Dl_info info{};
  if (dladdr1(symbol, &info, reinterpret_cast<void**>(&defined_in), RTLD_DL_LINKMAP) == 0) return nullptr;
  return defined_in == map ? static_cast<const std::uint32_t*>(symbol) : nullptr;
}

std::vector<Tool> find_tools(std::vector<std::string>* failed) {
  std::vector<Tool> tools;
  auto known = [&tools](void* library) {
    return std::any_of(tools.begin(), tools.end(), [&](const Tool& t) { return t.library == library; });
  };
  if (const char* list = std::getenv("HSA_TOOLS_LIB")) {
    std::istringstream names(list);
    for (std::string name; names >> name;) {
      void* library = dlopen(name.c_str(), RTLD_LAZY);
      if (library == nullptr) {
        complain("HSA_TOOLS_LIB: %s", dlerror());
        failed->push_back(name);
        continue;
      }
      if (known(library)) {
        dlclose(library);
        continue;
      }
      const std::uint32_t* priority = own_priority(library);
      tools.push_back({library, priority != nullptr ? *priority : 0, name});
    }
  }
  for (const std::string& name : loaded_library_names()) {
    void* library = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    const std::uint32_t* priority = known(library) ? nullptr : own_priority(library);
    if (priority == nullptr)
      dlclose(library);
    else
      tools.push_back({library, *priority, name});
  }
  std::stable_sort(tools.begin(), tools.end(),
                   [](const Tool& a, const Tool& b) { return a.priority < b.priority; });
  return tools;
}

// What rocprofiler-register does for ROCr 6.1 and later. Whether a profiler took the table.
bool offer_to_profiler() {
  if (is_true("HSA_TOOLS_DISABLE_REGISTER")) return false;
  if (const char* enabled = std::getenv("ROCPROFILER_REGISTER_ENABLED");
      enabled && std::strcmp(enabled, "0") == 0)
    return false;
  auto has_value = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  if (dlsym(RTLD_DEFAULT, "rocprofiler_configure") == nullptr && !has_value("ROCP_TOOL_LIBRARIES") &&
      !has_value("ROCPROFILER_REGISTER_LIBRARY") && !is_true("ROCPROFILER_REGISTER_FORCE_LOAD"))
    return false;
  using SetApiTable = int (*)(const char*, std::uint64_t, std::uint64_t, void**, std::uint64_t);
  auto set = reinterpret_cast<SetApiTable>(dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table"));
  if (set == nullptr) {
    const char* path = std::getenv("ROCPROFILER_REGISTER_LIBRARY");
    void* library =
        dlopen(path != nullptr && *path != '\0' ? path : "librocprofiler-sdk.so", RTLD_NOW | RTLD_GLOBAL);
    if (library != nullptr) set = reinterpret_cast<SetApiTable>(dlsym(library, "rocprofiler_set_api_table"));
  }
  if (set == nullptr) return false;
  constexpr std::uint64_t kVersion = 10000 * 1 + 100 * 15 + 0;
  void* tables[] = {&api_tables().root};
  return set("hsa", kVersion, 0, tables, 1) == 0;
}

}  // namespace

void load_tools() {
  if (offer_to_profiler() && !is_true("HSA_TOOLS_ROCPROFILER_V1_TOOLS")) return;
  std::vector<std::string> failed;
  abi::HsaApiTable* root = &api_tables().root;
  for (Tool& tool : find_tools(&failed)) {
    auto on_load = reinterpret_cast<abi::OnLoadFunction>(dlsym(tool.library, "OnLoad"));
    if (on_load == nullptr) {
      complain("%s defines no OnLoad, so it is no tool", tool.name.c_str());
      failed.push_back(tool.name);
      dlclose(tool.library);
      continue;
    }
    std::vector<const char*> failed_names;
    for (const std::string& name : failed) failed_names.push_back(name.c_str());
    const ApiTables before = api_tables();
    if (!on_load(root, root->version.major_id, failed_names.size(), failed_names.data())) {
      api_tables() = before;  // whatever it put in points into code that is about to go
      failed.push_back(tool.name);
      dlclose(tool.library);
      continue;
    }
    loaded_tools().push_back(std::move(tool));
  }
}

void unload_tools() {
  std::vector<Tool> tools = std::move(loaded_tools());
  loaded_tools().clear();
  for (auto tool = tools.rbegin(); tool != tools.rend(); ++tool)
    if (auto on_unload = reinterpret_cast<abi::OnUnloadFunction>(dlsym(tool->library, "OnUnload")))
      on_unload();
  reset_api_tables();
  for (auto tool = tools.rbegin(); tool != tools.rend(); ++tool) dlclose(tool->library);
}

void forget_tools() { loaded_tools().clear(); }

}  // namespace kerncap::sim::rt
