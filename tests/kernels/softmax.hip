// Softmax through LDS and an online log-softmax in f16.
#include "device.h"

extern "C" __global__ void softmax(const float* x, float* y, int n) {
  __shared__ float s[64];
  x += (size_t)blockIdx.x * n;
  y += (size_t)blockIdx.x * n;
  int t = threadIdx.x, nw = blockDim.x / warpSize;
  float m = -__builtin_inff();
  for (int i = t; i < n; i += blockDim.x) m = fmaxf(m, x[i]);
  for (int k = warpSize / 2; k; k >>= 1) m = fmaxf(m, __shfl_xor(m, k));
  if (__lane_id() == 0) s[t / warpSize] = m;
  __syncthreads();
  m = s[0];
  for (int i = 1; i < nw; i++) m = fmaxf(m, s[i]);
  __syncthreads();
  float a = 0;
  for (int i = t; i < n; i += blockDim.x) {
    float e = expf(x[i] - m);
    y[i] = e;
    a += e;
  }
  for (int k = warpSize / 2; k; k >>= 1) a += __shfl_xor(a, k);
  if (__lane_id() == 0) s[t / warpSize] = a;
  __syncthreads();
  a = 0;
  for (int i = 0; i < nw; i++) a += s[i];
  float r = 1.0f / a;
  for (int i = t; i < n; i += blockDim.x) y[i] *= r;
}

extern "C" __global__ void logsoftmax_h(const half* x, half* y, int n) {
  x += (size_t)blockIdx.x * n;
  y += (size_t)blockIdx.x * n;
  float m = -1e30f, a = 0;
  for (int i = threadIdx.x; i < n; i += warpSize) {
    float v = (float)x[i];
    float nm = fmaxf(m, v);
    a = a * expf(m - nm) + expf(v - nm);
    m = nm;
  }
  for (int k = warpSize / 2; k; k >>= 1) {
    float om = __shfl_xor(m, k), oa = __shfl_xor(a, k);
    float nm = fmaxf(m, om);
    a = a * expf(m - nm) + oa * expf(om - nm);
    m = nm;
  }
  float l = logf(a) + m;
  for (int i = threadIdx.x; i < n; i += warpSize) y[i] = (half)((float)x[i] - l);
}
