// Barriers of the whole grid by global wave sync, as the device library's grid sync has them.
#include "device.h"

#define GWS __attribute__((target("gws")))

extern "C" __global__ GWS void set_up(unsigned others) { __builtin_amdgcn_ds_gws_init(others, 3); }

// In each round every workgroup counts those whose number of the round it sees: all of them, after the
// barrier.
extern "C" __global__ GWS void rounds(unsigned* numbers, unsigned* wrong, int count, int broken) {
  const unsigned groups = gridDim.x;
  for (int round = 1; round <= count; ++round) {
    if (threadIdx.x == 0) {
      __scoped_atomic_store_n(&numbers[blockIdx.x], round, __ATOMIC_RELEASE, __MEMORY_SCOPE_DEVICE);
      __builtin_amdgcn_ds_gws_barrier(groups - 1, 3);
    }
    __syncthreads();
    for (unsigned g = threadIdx.x; g < groups; g += blockDim.x)
      if (__scoped_atomic_load_n(&numbers[g], __ATOMIC_ACQUIRE, __MEMORY_SCOPE_DEVICE) != (unsigned)round)
        wrong[g] = round;
    __syncthreads();
    if (threadIdx.x == 0) __builtin_amdgcn_ds_gws_barrier(groups - 1, 3);
    __syncthreads();
    if (round == broken && blockIdx.x == 1) __builtin_trap();
  }
}
