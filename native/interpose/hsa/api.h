// The runtime's functions as they were before we put ours in front, and the loader extension.
#pragma once

#include "abi/hsa.h"

namespace kerncap::interpose {

struct Api {
  abi::CoreApiTable core{};
  abi::AmdExtTable amd{};  // entries that the runtime lacks are null

  // Null entries where the runtime's extension is older. Filled by load_extension().
  abi::hsa_ven_amd_loader_1_03_pfn_t loader{};
  void load_extension();
};

// Valid from the first OnLoad on.
Api& api();

// Whether the runtime's tables have been seen.
bool api_known();
void set_api_known();

}  // namespace kerncap::interpose
