// What every entry point of the library ends with: the thread's last error, as hipGetLastError reports it.
#pragma once

// The API is exported; everything else stays hidden.
#pragma GCC visibility push(default)
#include "sim/hip/include/hip/hip_runtime_api.h"
#pragma GCC visibility pop

namespace kerncap::sim::hip {

// Remembers `error` for hipGetLastError, unless it is hipSuccess or hipErrorNotReady, and returns it.
hipError_t record(hipError_t error);

}  // namespace kerncap::sim::hip
