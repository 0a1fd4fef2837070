// Dynamic LDS, __constant__ and __device__ variables, arguments by structure, narrow integers.
#include "device.h"

__constant__ float coef[64];
__device__ int counter;
__device__ float table[256] = {1, 2, 3, 4};

extern "C" __global__ void dynlds(const float* x, float* y, int n) {
  DYNAMIC_SHARED(float, d);
  int t = threadIdx.x;
  d[t] = x[blockIdx.x * blockDim.x + t];
  d[t + blockDim.x] = coef[t & 63];
  __syncthreads();
  float a = 0;
  for (int i = 0; i < n; i++) a += d[(t + i) % blockDim.x] * d[blockDim.x + i];
  y[blockIdx.x * blockDim.x + t] = a;
}

extern "C" __global__ void constk(const float* x, float* y) {
  int t = threadIdx.x;
  float a = 0;
  for (int i = 0; i < 64; i++) a = a * x[t] + coef[i];
  y[t] = a + table[t & 255];
  if (t == 0) atomicAdd(&counter, 1);
}

struct Big {
  int n;
  float v[20];
  const float* p;
  double d;
};

extern "C" __global__ void bystruct(Big b, float* o) {
  float s = 0;
  for (int i = 0; i < b.n; i++) s += b.v[i % 20] * b.p[i];
  o[threadIdx.x] = s + b.d;
}

extern "C" __global__ void bytes(const signed char* a, const short* b, uchar* c, ushort* d, bool* e) {
  int i = threadIdx.x;
  c[i] = a[i] + b[i];
  d[i] = a[i] * b[i];
  e[i] = a[i] > b[i];
}
