// RMS norm, and what is added to the residual stream.
#include <hip/hip_runtime.h>

#include "wave.h"

#define MAX_WAVES 16

// One workgroup a row of n values.
extern "C" __global__ void rms_norm(const float* __restrict__ x, const float* __restrict__ weight,
                                    float* __restrict__ dst, int n, float eps) {
  __shared__ float partial[MAX_WAVES];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i] * x[i];
  sum = group_sum(sum, warpSize);
  if (threadIdx.x % warpSize == 0) partial[threadIdx.x / warpSize] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int wave = 0; wave < (int)blockDim.x / warpSize; ++wave) sum += partial[wave];
  const float scale = 1.0f / sqrtf(sum / n + eps);
  for (int i = threadIdx.x; i < n; i += blockDim.x) dst[i] = x[i] * scale * weight[i];
}

// x += y, in place.
extern "C" __global__ void add(float* x, const float* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += y[i];
}

// x += the experts' outputs, each by its weight; in place.
extern "C" __global__ void add_experts(float* x, const float* __restrict__ y, const float* __restrict__ weights,
                                       int n, int used) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = x[i];
  for (int slot = 0; slot < used; ++slot) sum += weights[slot] * y[slot * n + i];
  x[i] = sum;
}
