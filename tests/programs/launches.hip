#include <hip/hip_runtime.h>

extern "C" __global__ void tick(unsigned* counter) {
  if (threadIdx.x == 0) *counter += 1;
}

extern "C" __global__ void tock(unsigned* counter) {
  if (threadIdx.x == 0) *counter += 1;
}
