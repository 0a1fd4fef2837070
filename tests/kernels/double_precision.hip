// f64: axpy, triad, dot product through LDS, division and square root.
#include "device.h"

extern "C" __global__ void daxpy(double a, const double* x, double* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void triad(double a, const double* __restrict b, const double* __restrict c,
                                 double* __restrict o) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  o[i] = b[i] + a * c[i];
}

extern "C" __global__ void dotd(const double* a, const double* b, double* s, int n) {
  __shared__ double t[256];
  int l = threadIdx.x;
  double v = 0;
  for (int i = blockIdx.x * 256 + l; i < n; i += 256 * gridDim.x) v += a[i] * b[i];
  t[l] = v;
  for (int o = 128; o > 0; o >>= 1) {
    __syncthreads();
    if (l < o) t[l] += t[l + o];
  }
  if (!l) s[blockIdx.x] = t[0];
}

extern "C" __global__ void ddiv(const double* a, const double* b, double* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] / b[i] + sqrt(a[i]);
}
