// Hands the API table to the program that loads it.
#include <dlfcn.h>

#include "abi/hsa.h"

extern "C" __attribute__((visibility("default"))) const std::uint32_t HSA_AMD_TOOL_PRIORITY = 50;

extern "C" __attribute__((visibility("default"))) bool OnLoad(kerncap::abi::HsaApiTable* table, std::uint64_t,
                                                              std::uint64_t, const char* const*) {
  auto take = reinterpret_cast<void (*)(kerncap::abi::HsaApiTable*)>(dlsym(RTLD_DEFAULT, "take_table"));
  if (take != nullptr) take(table);
  return true;
}
