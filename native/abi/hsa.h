// The HSA ABI as kerncap uses it: types, structures behind handles, loader extension and API tables.
// Nothing here declares a function; those who link the runtime include abi/hsa_functions.h.
#pragma once

#include "abi/hsa_amd_types.h"
#include "abi/hsa_code_types.h"
#include "abi/hsa_layouts.h"
#include "abi/hsa_loader.h"
#include "abi/hsa_tables.h"
#include "abi/hsa_types.h"
