// AMD's loader extension.
#pragma once

#include "abi/hsa_loader.h"

namespace kerncap::sim::rt {

const abi::hsa_ven_amd_loader_1_03_pfn_t& loader_extension_table();

}  // namespace kerncap::sim::rt
