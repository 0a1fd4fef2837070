// f32 matrix products: one element a work-item through LDS, and an 8x8 register tile.
#include "device.h"

#define T 16

extern "C" __global__ void sgemm(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float As[T][T + 1], Bs[T][T + 1];
  int tx = threadIdx.x, ty = threadIdx.y;
  int r = blockIdx.y * T + ty, c = blockIdx.x * T + tx;
  float acc = 0;
  for (int k = 0; k < K; k += T) {
    As[ty][tx] = (r < M && k + tx < K) ? A[r * K + k + tx] : 0;
    Bs[ty][tx] = (k + ty < K && c < N) ? B[(k + ty) * N + c] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < T; i++) acc += As[ty][i] * Bs[i][tx];
    __syncthreads();
  }
  if (r < M && c < N) C[r * N + c] = acc;
}

extern "C" __global__ void __launch_bounds__(256)
    sgemm_reg(const float* __restrict A, const float* __restrict B, float* __restrict C, int M, int N, int K,
              float alpha, float beta) {
  __shared__ float As[8][128];
  __shared__ float Bs[8][128];
  int t = threadIdx.x;
  int tr = t / 16, tc = t % 16;
  float acc[8][8] = {};
  A += blockIdx.y * 128 * K;
  B += blockIdx.x * 128;
  C += blockIdx.y * 128 * N + blockIdx.x * 128;
  int ar = t / 2, ac = (t % 2) * 4, br = t / 32, bc = (t % 32) * 4;
  for (int k = 0; k < K; k += 8) {
    float4_t av = *(const float4_t*)&A[ar * K + k + ac];
    for (int i = 0; i < 4; i++) As[ac + i][ar] = av[i];
    *(float4_t*)&Bs[br][bc] = *(const float4_t*)&B[(k + br) * N + bc];
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 8; kk++) {
      float a[8], b[8];
#pragma unroll
      for (int i = 0; i < 8; i++) {
        a[i] = As[kk][tr * 8 + i];
        b[i] = Bs[kk][tc * 8 + i];
      }
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) acc[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) {
      float* p = &C[(tr * 8 + i) * N + tc * 8 + j];
      *p = alpha * acc[i][j] + beta * *p;
    }
}
