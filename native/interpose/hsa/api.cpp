#include "interpose/hsa/api.h"

#include <atomic>

namespace kerncap::interpose {
namespace {

std::atomic<bool> known{false};

}  // namespace

Api& api() {
  // Never destroyed: hooks run until the last of the process's static destructors.
  static Api* instance = new Api;  // NOLINT(cppcoreguidelines-owning-memory)
  return *instance;
}

bool api_known() { return known.load(std::memory_order_acquire); }
void set_api_known() { known.store(true, std::memory_order_release); }

void Api::load_extension() {
  loader = {};
  if (core.hsa_system_get_major_extension_table_fn == nullptr) return;
  for (const std::size_t bytes : {sizeof loader, abi::kLoaderTable102Bytes, abi::kLoaderTable101Bytes}) {
    if (core.hsa_system_get_major_extension_table_fn(abi::HSA_EXTENSION_AMD_LOADER, 1, bytes, &loader) ==
        abi::HSA_STATUS_SUCCESS) {
      return;
    }
  }
  loader = {};
}

}  // namespace kerncap::interpose
