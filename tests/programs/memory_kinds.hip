#include <hip/hip_runtime.h>

// Five buffers of different kinds, each read and written.
extern "C" __global__ void touch(int* device, int* pinned, int* registered, int* managed, int* pooled, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  device[i] += 1;
  pinned[i] += 2;
  registered[i] += 3;
  managed[i] += 4;
  pooled[i] = device[i] + pinned[i] + registered[i] + managed[i];
}
