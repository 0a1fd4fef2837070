// Makes the runtime's API tables look like another version's, before kerncap sees them: as a tool that goes
// first (HSA_TOOLS_LIB), or as the library that rocprofiler-register hands the tables to
// (ROCPROFILER_REGISTER_LIBRARY). KERNCAP_TEST_TABLES holds words: root=N, core=N and amd=N set major
// versions, core-bytes=N and amd-bytes=N the sizes, lacks=NAME a null entry.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "abi/hsa_tables.h"

using namespace kerncap::abi;  // NOLINT

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

bool set_null(HsaApiTable& table, const std::string& name) {
#define ENTRY(where, function)            \
  if (name == #function) {                \
    table.where->function##_fn = nullptr; \
    return true;                          \
  }
  ENTRY(core_, hsa_queue_create)
  ENTRY(core_, hsa_memory_allocate)
  ENTRY(core_, hsa_executable_load_program_code_object)
  ENTRY(core_, hsa_code_object_reader_create_from_file)
  ENTRY(amd_ext_, hsa_amd_queue_intercept_create)
  ENTRY(amd_ext_, hsa_amd_queue_intercept_register)
  ENTRY(amd_ext_, hsa_amd_signal_create)
  ENTRY(amd_ext_, hsa_amd_pointer_info)
  ENTRY(amd_ext_, hsa_amd_memory_lock)
  ENTRY(amd_ext_, hsa_amd_memory_lock_to_pool)
  ENTRY(amd_ext_, hsa_amd_svm_attributes_set)
  ENTRY(amd_ext_, hsa_amd_memory_async_copy)
  ENTRY(amd_ext_, hsa_amd_memory_async_copy_on_engine)
  ENTRY(amd_ext_, hsa_amd_vmem_map)
#undef ENTRY
  return false;
}

void change(HsaApiTable& table) {
  const char* text = std::getenv("KERNCAP_TEST_TABLES");
  std::istringstream words(text != nullptr ? text : "");
  for (std::string word; words >> word;) {
    const std::size_t at = word.find('=');
    const std::string what = word.substr(0, at), value = word.substr(at + 1);
    const auto number = static_cast<std::uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
    bool known = true;
    if (what == "root") {
      table.version.major_id = number;
    } else if (what == "core") {
      table.core_->version.major_id = number;
    } else if (what == "amd") {
      table.amd_ext_->version.major_id = number;
    } else if (what == "core-bytes") {
      table.core_->version.minor_id = number;
    } else if (what == "amd-bytes") {
      table.amd_ext_->version.minor_id = number;
    } else {
      known = what == "lacks" && set_null(table, value);
    }
    if (!known) {
      std::fprintf(stderr, "tables: what is %s?\n", word.c_str());
      std::abort();
    }
  }
}

}  // namespace

EXPORT const std::uint32_t HSA_AMD_TOOL_PRIORITY;
const std::uint32_t HSA_AMD_TOOL_PRIORITY = 1;

EXPORT bool OnLoad(HsaApiTable* table, std::uint64_t, std::uint64_t, const char* const*) {
  change(*table);
  return true;
}

EXPORT int rocprofiler_set_api_table(const char*, std::uint64_t, std::uint64_t, void** tables,
                                     std::uint64_t) {
  change(*static_cast<HsaApiTable*>(tables[0]));
  return 0;
}
