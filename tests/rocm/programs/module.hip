// A code object that modules.hip loads from a file (hipModuleLoad).
#include <hip/hip_runtime.h>

extern "C" __device__ float factor;
__device__ float factor = 1;

extern "C" __global__ void scale(float* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= factor;
}
