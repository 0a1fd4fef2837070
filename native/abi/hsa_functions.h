// The exported functions, for code that links the runtime. Code that finds them by dlsym needs only their
// types: decltype(CoreApiTable::hsa_init_fn) and so on, in hsa_tables.h.
//
// The three intercept functions (hsa_amd_queue_intercept_create and _register,
// hsa_amd_runtime_queue_create_register) are declared too, but no runtime exports them: use the table.
//
// They have C linkage, so a translation unit cannot hold both these and AMD's hsa.h.
#pragma once

#include "abi/hsa_loader.h"
#include "abi/hsa_tables.h"

namespace kerncap::abi {

extern "C" {
#define KERNCAP_HSA_DECLARE(ret, name, params, args) ret name params;
KERNCAP_HSA_CORE_FUNCTIONS(KERNCAP_HSA_DECLARE)
KERNCAP_HSA_AMD_FUNCTIONS(KERNCAP_HSA_DECLARE)
KERNCAP_HSA_IMAGE_FUNCTIONS(KERNCAP_HSA_DECLARE)
#undef KERNCAP_HSA_DECLARE
}

}  // namespace kerncap::abi
