#include <hip/hip_runtime.h>

__constant__ float coefficients[4];
__device__ int calls = 0;
__device__ float history[256];

// Reads constants, and changes two variables of its module.
extern "C" __global__ void polynomial(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) calls += 1;
  if (i >= n) return;
  const float v = x[i];
  const float r = coefficients[0] + v * (coefficients[1] + v * (coefficients[2] + v * coefficients[3]));
  y[i] = r;
  if (i < 256) history[i] += r;
}
