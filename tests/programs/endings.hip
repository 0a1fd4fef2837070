#include <hip/hip_runtime.h>

extern "C" __global__ void bump(int* count) {
  if (threadIdx.x == 0) count[blockIdx.x] += 1;
}
