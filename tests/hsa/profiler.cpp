// What rocprofiler-sdk is to the runtime: a library that asks for the API table by rocprofiler-register's
// protocol.
#include <cstdio>
#include <cstdlib>

#include "abi/hsa.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

#ifndef NO_CONFIGURE
EXPORT void* rocprofiler_configure() { return nullptr; }
#endif

EXPORT int rocprofiler_set_api_table(const char* name, std::uint64_t version, std::uint64_t, void** tables,
                                     std::uint64_t count) {
  auto* table = static_cast<kerncap::abi::HsaApiTable*>(tables[0]);
  const bool good = version >= 10000 && table->core_->hsa_init_fn != nullptr;
  if (FILE* file = std::fopen(std::getenv("KERNCAP_TEST_LOG"), "a")) {
    std::fprintf(file, "profiler %s %llu%s\n", name, static_cast<unsigned long long>(count),
                 good ? "" : " wrong");
    std::fclose(file);
  }
  return 0;
}
