// Quantised matrix-vector products (q8_0, q4_0, q4_K blocks, dp4a) and a quantiser.
#include "device.h"

static __device__ __forceinline__ int dp4a(int a, int b, int c) {
#if defined(__gfx1100__)
  return __builtin_amdgcn_sudot4(true, a, true, b, c, false);
#else
  return __builtin_amdgcn_sdot4(a, b, c, false);
#endif
}

struct block_q8_0 {
  half d;
  signed char qs[32];
};

struct block_q4_0 {
  half d;
  uchar qs[16];
};

struct block_q8_1 {
  half d, s;
  signed char qs[32];
};

struct block_q4_K {
  half d, dmin;
  uchar scales[12];
  uchar qs[128];
};

static __device__ __forceinline__ int ldi2(const void* p, int i) {
  const ushort* x = (const ushort*)p;
  return x[2 * i] | (x[2 * i + 1] << 16);
}

static __device__ __forceinline__ float wred(float v) {
  for (int k = warpSize / 2; k; k >>= 1) v += __shfl_xor(v, k);
  return v;
}

extern "C" __global__ void mmv_q8_0(const block_q8_0* x, const block_q8_1* y, float* o, int nb) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  float a = 0;
  for (int b = threadIdx.x; b < nb; b += blockDim.x) {
    const block_q8_0* q = x + (size_t)row * nb + b;
    const block_q8_1* p = y + b;
    int s = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) s = dp4a(ldi2(q->qs, i), ((const int*)p->qs)[i], s);
    a += (float)q->d * (float)p->d * s;
  }
  a = wred(a);
  if (threadIdx.x == 0) o[row] = a;
}

extern "C" __global__ void mmv_q4_0(const block_q4_0* x, const block_q8_1* y, float* o, int nb) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  float a = 0;
  for (int b = threadIdx.x; b < nb; b += blockDim.x) {
    const block_q4_0* q = x + (size_t)row * nb + b;
    const block_q8_1* p = y + b;
    int s = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int v = ldi2(q->qs, i);
      s = dp4a(v & 0x0f0f0f0f, ((const int*)p->qs)[i], s);
      s = dp4a((v >> 4) & 0x0f0f0f0f, ((const int*)p->qs)[i + 4], s);
    }
    a += (float)q->d * (s * (float)p->d - 8 * (float)p->s);
  }
  a = wred(a);
  if (threadIdx.x == 0) o[row] = a;
}

extern "C" __global__ void mmv_q4_K(const block_q4_K* x, const block_q8_1* y, float* o, int nb) {
  int row = blockIdx.x;
  float a = 0;
  for (int u = threadIdx.x; u < nb * 8; u += blockDim.x) {
    int b = u >> 3, j = u & 7;
    const block_q4_K* q = x + (size_t)row * nb + b;
    const block_q8_1* p = y + u;
    int sc, mn;
    if (j < 4) {
      sc = q->scales[j] & 63;
      mn = q->scales[j + 4] & 63;
    } else {
      sc = (q->scales[j + 4] & 15) | ((q->scales[j - 4] >> 6) << 4);
      mn = (q->scales[j + 4] >> 4) | ((q->scales[j] >> 6) << 4);
    }
    int s = 0;
    for (int i = 0; i < 8; i++) {
      int v = ((const int*)(q->qs + (j >> 1) * 32))[i];
      v = (j & 1) ? (v >> 4) & 0x0f0f0f0f : v & 0x0f0f0f0f;
      s = dp4a(v, ((const int*)p->qs)[i], s);
    }
    a += (float)p->d * ((float)q->d * sc * s) - (float)p->s * (float)q->dmin * mn;
  }
  a = wred(a);
  if (threadIdx.x == 0) o[row] = a;
}

extern "C" __global__ void quant_q8_1(const float* x, block_q8_1* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0;
  float m = fabsf(v), s = v;
  for (int k = 16; k; k >>= 1) {
    m = fmaxf(m, __shfl_xor(m, k));
    s += __shfl_xor(s, k);
  }
  float d = m / 127;
  y[i / 32].qs[i % 32] = m == 0 ? 0 : (signed char)__builtin_roundf(v / d);
  if (i % 32 == 0) {
    y[i / 32].d = (half)d;
    y[i / 32].s = (half)s;
  }
}
