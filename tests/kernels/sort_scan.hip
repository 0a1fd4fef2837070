// Bitonic sort, scans through LDS and DPP, a radix histogram.
#include "device.h"

extern "C" __global__ void bitonic(uint* x) {
  __shared__ uint s[512];
  int t = threadIdx.x;
  s[t] = x[t];
  s[t + 256] = x[t + 256];
  for (int k = 2; k <= 512; k <<= 1)
    for (int j = k >> 1; j > 0; j >>= 1) {
      __syncthreads();
      int i = 2 * t - (t & (j - 1));
      uint a = s[i], b = s[i + j];
      bool up = (i & k) == 0;
      if ((a > b) == up) {
        s[i] = b;
        s[i + j] = a;
      }
    }
  __syncthreads();
  x[t] = s[t];
  x[t + 256] = s[t + 256];
}

extern "C" __global__ void scan(const int* x, int* y, int n) {
  __shared__ int s[2][256];
  int t = threadIdx.x, p = 0;
  s[0][t] = t < n ? x[t] : 0;
  for (int d = 1; d < 256; d <<= 1) {
    __syncthreads();
    s[1 - p][t] = s[p][t] + (t >= d ? s[p][t - d] : 0);
    p = 1 - p;
  }
  y[t] = s[p][t];
}

template <int C, int R>
static __device__ __forceinline__ int sdpp(int v) {
  return __builtin_amdgcn_update_dpp(0, v, C, R, 0xf, false);
}

extern "C" __global__ void wscan(const int* x, int* y) {
  int v = x[threadIdx.x];
  v += sdpp<0x111, 0xf>(v);
  v += sdpp<0x112, 0xf>(v);
  v += sdpp<0x114, 0xf>(v);
  v += sdpp<0x118, 0xf>(v);
#if !defined(__gfx1100__)
  v += sdpp<0x142, 0xa>(v);
  v += sdpp<0x143, 0xc>(v);
#endif
  y[threadIdx.x] = v;
}

extern "C" __global__ void radix_count(const u64* k, uint* c, int sh, int n) {
  __shared__ uint h[16];
  if (threadIdx.x < 16) h[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 256) {
    uint d = (uint)(k[i] >> sh) & 15;
    atomicAdd(&h[d], 1u);
  }
  __syncthreads();
  if (threadIdx.x < 16) c[blockIdx.x * 16 + threadIdx.x] = h[threadIdx.x];
}
