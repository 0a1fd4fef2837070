// 3-D stencil, LDS transposes of f32 and f16, a byte convolution.
#include "device.h"

extern "C" __global__ void stencil7(const float* a, float* b, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
      z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < 1 || y < 1 || z < 1 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1) return;
  size_t i = ((size_t)z * ny + y) * nx + x;
  b[i] = 0.4f * a[i] + 0.1f * (a[i - 1] + a[i + 1] + a[i - nx] + a[i + nx] + a[i - (size_t)nx * ny] +
                               a[i + (size_t)nx * ny]);
}

extern "C" __global__ void transpose(const float* a, float* b, int w, int h) {
  __shared__ float t[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < w && y + j < h) t[threadIdx.y + j][threadIdx.x] = a[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < h && y + j < w) b[(y + j) * h + x] = t[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void trh(const half* a, half* b, int n) {
  __shared__ half t[64][66];
  for (int j = threadIdx.y; j < 64; j += 4)
    t[j][threadIdx.x] = a[(blockIdx.y * 64 + j) * n + blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  for (int j = threadIdx.y; j < 64; j += 4)
    b[(blockIdx.x * 64 + j) * n + blockIdx.y * 64 + threadIdx.x] = t[threadIdx.x][j];
}

extern "C" __global__ void conv2d_u8(const uchar* in, uchar* out, int w, int h) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x >= w || y >= h) return;
  int s = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) {
      int xx = x + dx < 0    ? 0
               : x + dx >= w ? w - 1
                             : x + dx,
          yy = y + dy < 0    ? 0
               : y + dy >= h ? h - 1
                             : y + dy;
      s += in[yy * w + xx];
    }
  out[y * w + x] = s / 9;
}
