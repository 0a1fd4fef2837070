// RMS norm, layer norm, rotary embedding and activations in f32, f16 and bf16.
#include "device.h"

extern "C" __global__ void rmsnorm(const half* x, const half* w, half* y, int n, float eps) {
  __shared__ float s[32];
  x += (size_t)blockIdx.x * n;
  y += (size_t)blockIdx.x * n;
  float a = 0;
  int t = threadIdx.x;
  for (int i = t; i < n; i += blockDim.x) {
    float v = x[i];
    a += v * v;
  }
  for (int k = warpSize / 2; k; k >>= 1) a += __shfl_xor(a, k);
  if (__lane_id() == 0) s[t / warpSize] = a;
  __syncthreads();
  a = 0;
  for (int i = 0; i < (int)(blockDim.x / warpSize); i++) a += s[i];
  float r = 1.0f / sqrtf(a / n + eps);
  for (int i = t; i < n; i += blockDim.x) y[i] = (half)((float)x[i] * r * (float)w[i]);
}

extern "C" __global__ void rmsnorm_v(const half2_t* x, const half2_t* w, half2_t* y, int n, float eps) {
  int t = threadIdx.x;
  half2_t v = x[t];
  half2_t q = v * v;
  float a = (float)q[0] + (float)q[1];
  for (int k = warpSize / 2; k; k >>= 1) a += __shfl_xor(a, k);
  half r = (half)rsqrtf(a / n + eps);
  half2_t rr = {r, r};
  y[t] = v * rr * w[t] + v;
}

extern "C" __global__ void rope(float* q, const int* pos, int nh, int hd, float theta) {
  int h = blockIdx.y, p = blockIdx.x, d = threadIdx.x;
  float f = __builtin_amdgcn_exp2f(-2.0f * d / hd * __builtin_log2f(theta));
  float a = pos[p] * f;
  float rev = a * 0.15915494309189535f;
  rev = __builtin_amdgcn_fractf(rev);
  float s = __builtin_amdgcn_sinf(rev), c = __builtin_amdgcn_cosf(rev);
  float* b = q + ((size_t)p * nh + h) * hd;
  float x0 = b[d], x1 = b[d + hd / 2];
  b[d] = x0 * c - x1 * s;
  b[d + hd / 2] = x0 * s + x1 * c;
}

extern "C" __global__ void silu_gelu(const __bf16* x, __bf16* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = (float)x[i];
  float s = v / (1 + expf(-v));
  float e = expf(2 * 0.79788456f * (v + 0.044715f * v * v * v));
  s += 0.5f * v * (1 + (e - 1) / (e + 1));
  y[i] = (__bf16)s;
}

extern "C" __global__ void layernorm(const float* x, const float* g, const float* b, float* y, int n) {
  x += (size_t)blockIdx.x * n;
  y += (size_t)blockIdx.x * n;
  float m = 0, m2 = 0;
  for (int i = threadIdx.x; i < n; i += warpSize) {
    m += x[i];
    m2 += x[i] * x[i];
  }
  for (int k = warpSize / 2; k; k >>= 1) {
    m += __shfl_xor(m, k);
    m2 += __shfl_xor(m2, k);
  }
  m /= n;
  float v = m2 / n - m * m;
  float r = rsqrtf(v + 1e-5f);
  for (int i = threadIdx.x; i < n; i += warpSize) y[i] = (x[i] - m) * r * g[i] + b[i];
}
