// What the interpreter's speed is measured with: a chain of FMAs, and a tiled product through LDS.
#include <hip/hip_runtime.h>

extern "C" __global__ void fma_loop(float* out, float a, float b, int n) {
  float x0 = threadIdx.x, x1 = x0 + 1, x2 = x0 + 2, x3 = x0 + 3, x4 = x0 + 4, x5 = x0 + 5, x6 = x0 + 6, x7 = x0 + 7;
  for (int i = 0; i < n; ++i) {
    x0 = __builtin_fmaf(x0, a, b);
    x1 = __builtin_fmaf(x1, a, b);
    x2 = __builtin_fmaf(x2, a, b);
    x3 = __builtin_fmaf(x3, a, b);
    x4 = __builtin_fmaf(x4, a, b);
    x5 = __builtin_fmaf(x5, a, b);
    x6 = __builtin_fmaf(x6, a, b);
    x7 = __builtin_fmaf(x7, a, b);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7;
}

// C = A * B, all n x n row-major, n a multiple of 64. A workgroup of 16 x 16 work-items makes 64 x 64 elements.
extern "C" __global__ void sgemm_tiled(const float* A, const float* B, float* C, int n) {
  __shared__ float a[16][64];
  __shared__ float b[16][64];
  const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx;
  const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < n; k0 += 16) {
    for (int e = thread; e < 16 * 64; e += 256) {
      a[e & 15][e >> 4] = A[(row0 + (e >> 4)) * n + k0 + (e & 15)];
      b[e >> 6][e & 63] = B[(k0 + (e >> 6)) * n + column0 + (e & 63)];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = __builtin_fmaf(a[k][ty * 4 + i], b[k][tx * 4 + j], sum[i][j]);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) C[(row0 + ty * 4 + i) * n + column0 + tx * 4 + j] = sum[i][j];
  }
}
