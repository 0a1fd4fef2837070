// Vector additions: one element a work-item, grid-stride, 16 bytes a work-item.
#include "device.h"

extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void vadd_stride(const float* a, const float* b, float* c, size_t n) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
    c[i] = a[i] * 2.0f + b[i];
}

extern "C" __global__ void vadd4(const float4_t* a, const float4_t* b, float4_t* c, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
