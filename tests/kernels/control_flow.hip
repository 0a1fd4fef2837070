// Divergent and uniform switches (jump tables), data-dependent loops, a trap.
#include "device.h"

extern "C" __global__ void sw(const int* op, const float* a, float* o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = a[i];
  switch (op[i]) {
    case 0:
      v += 1;
      break;
    case 1:
      v *= 2;
      break;
    case 2:
      v = sqrtf(v);
      break;
    case 3:
      v = 1 / v;
      break;
    case 4:
      for (int k = 0; k < i % 7; k++) v += k;
      break;
    case 5:
      v = __builtin_floorf(v);
      break;
    case 6:
      v = __builtin_truncf(v);
    case 7:
      v = -v;
      break;
    default:
      v = 0;
  }
  o[i] = v;
}

extern "C" __global__ void collatz(const int* a, int* o) {
  int i = threadIdx.x;
  uint x = a[i];
  int c = 0;
  while (x != 1) {
    x = (x & 1) ? 3 * x + 1 : x >> 1;
    if (++c > 1000) break;
  }
  o[i] = c;
}

extern "C" __global__ void usw(int m, float* o) {
  switch (m) {
    case 0:
      o[threadIdx.x] = 1;
      break;
    case 1:
      o[threadIdx.x] = threadIdx.x * 2;
      break;
    case 5:
      o[threadIdx.x] = o[threadIdx.x + 1];
      break;
    case 9:
      __syncthreads();
      o[0] = 3;
      break;
    default:
      if (m > 100) __builtin_trap();
  }
}

extern "C" __global__ void mandel(int* o, int w, int h, int mx) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float cx = x * 3.f / w - 2, cy = y * 2.f / h - 1, zx = 0, zy = 0;
  int n = 0;
  while (n < mx && zx * zx + zy * zy < 4) {
    float t = zx * zx - zy * zy + cx;
    zy = 2 * zx * zy + cy;
    zx = t;
    n++;
  }
  o[y * w + x] = n;
}
