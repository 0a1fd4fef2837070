// The runtime's own implementation of each function of the API tables, under the function's own name.
// Programs reach them through the exports (exports.cpp), which call whatever the live table holds.
#pragma once

#include "abi/hsa.h"

namespace kerncap::sim::rt::impl {

using namespace kerncap::abi;  // NOLINT: the names of the ABI are the names here

#define KERNCAP_SIM_DECLARE(ret, name, params, args) ret name params;
KERNCAP_HSA_CORE_FUNCTIONS(KERNCAP_SIM_DECLARE)
KERNCAP_HSA_AMD_FUNCTIONS(KERNCAP_SIM_DECLARE)
KERNCAP_HSA_IMAGE_FUNCTIONS(KERNCAP_SIM_DECLARE)
#undef KERNCAP_SIM_DECLARE

}  // namespace kerncap::sim::rt::impl
