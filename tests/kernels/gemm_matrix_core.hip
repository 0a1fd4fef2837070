// Matrix products on the matrix cores: MFMA on gfx90a and gfx942, WMMA on gfx1100.
#include "device.h"

#if !defined(__gfx1100__)
extern "C" __global__ void hgemm16(const half* A, const half* B, float* C, int N,
                                   int K) {  // one wave: 16x16 tile
  int l = threadIdx.x & 63;
  int r = l & 15, q = l >> 4;
  A += (size_t)blockIdx.y * 16 * K;
  B += blockIdx.x * 16;
  float4_t acc = {};
  for (int k = 0; k < K; k += 16) {
    half4_t a = *(const half4_t*)&A[r * K + k + q * 4];
    half4_t b;
    for (int i = 0; i < 4; i++) b[i] = B[(k + q * 4 + i) * N + r];
    acc = __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, acc, 0, 0, 0);
  }
  for (int i = 0; i < 4; i++) C[(blockIdx.y * 16 + q * 4 + i) * N + blockIdx.x * 16 + r] = acc[i];
}

extern "C" __global__ void __launch_bounds__(256)
    hgemm32(const half* __restrict A, const half* __restrict B, float* __restrict C, int M, int N, int K) {
  __shared__ half As[64][40];
  __shared__ half Bs[64][40];
  int t = threadIdx.x, l = t & 63, w = t >> 6;
  int wm = (w >> 1) * 32, wn = (w & 1) * 32;
  int r = l & 31, q = l >> 5;
  float16_t acc = {};
  A += (size_t)blockIdx.y * 64 * K;
  B += (size_t)blockIdx.x * 64 * K;
  for (int k = 0; k < K; k += 32) {
    int row = t >> 2, c = (t & 3) * 8;
    *(half8_t*)&As[row][c] = *(const half8_t*)&A[row * K + k + c];
    *(half8_t*)&Bs[row][c] = *(const half8_t*)&B[row * K + k + c];
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 32; kk += 8) {
      half4_t a = *(half4_t*)&As[wm + r][kk + q * 4], b = *(half4_t*)&Bs[wn + r][kk + q * 4];
      acc = __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, acc, 0, 0, 0);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 16; i++) {
    int m = blockIdx.y * 64 + wm + (i & 3) + 8 * (i >> 2) + 4 * q;
    C[(size_t)m * N + blockIdx.x * 64 + wn + r] = acc[i];
  }
}

extern "C" __global__ void bgemm16(const short4_t* A, const short4_t* B, float4_t* C, int K) {
  int l = threadIdx.x;
  float4_t acc = {};
  for (int k = 0; k < K; k++)
    acc = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(A[k * 64 + l], B[k * 64 + l], acc, 0, 0, 0);
  C[l] = acc;
}

extern "C" __global__ void sgemm_mfma(const float* A, const float* B, float* C, int K) {
  int l = threadIdx.x;
  float16_t acc = {};
  for (int k = 0; k < K; k += 2)
    acc = __builtin_amdgcn_mfma_f32_32x32x2f32(A[(l & 31) * K + k + (l >> 5)], B[(l & 31) * K + k + (l >> 5)],
                                               acc, 0, 0, 0);
  for (int i = 0; i < 16; i++) C[i * 64 + l] = acc[i];
}

extern "C" __global__ void dgemm_mfma(const double* A, const double* B, double* C, int K) {
  int l = threadIdx.x;
  double4_t acc = {};
  for (int k = 0; k < K; k += 4)
    acc = __builtin_amdgcn_mfma_f64_16x16x4f64(A[(l & 15) * K + k + (l >> 4)], B[(l & 15) * K + k + (l >> 4)],
                                               acc, 0, 0, 0);
  for (int i = 0; i < 4; i++) C[i * 64 + l] = acc[i];
}
#if !defined(__gfx90a__)
extern "C" __global__ void i8gemm(const long* A, const long* B, int4_t* C, int K) {
  int l = threadIdx.x;
  int4_t acc = {};
  for (int k = 0; k < K; k++)
    acc = __builtin_amdgcn_mfma_i32_16x16x32_i8(A[k * 64 + l], B[k * 64 + l], acc, 0, 0, 0);
  C[l] = acc;
}

extern "C" __global__ void f8gemm(const long* A, const long* B, float4_t* C, int K) {
  int l = threadIdx.x;
  float4_t acc = {};
  for (int k = 0; k < K; k++)
    acc = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(A[k * 64 + l], B[k * 64 + l], acc, 0, 0, 0);
  C[l] = acc;
}
#else
extern "C" __global__ void i8gemm(const int* A, const int* B, int4_t* C, int K) {
  int l = threadIdx.x;
  int4_t acc = {};
  for (int k = 0; k < K; k++)
    acc = __builtin_amdgcn_mfma_i32_16x16x16i8(A[k * 64 + l], B[k * 64 + l], acc, 0, 0, 0);
  C[l] = acc;
}
#endif
#else
extern "C" __global__ void hgemm_wmma(const half* A, const half* B, float* C, int N, int K) {
  int l = threadIdx.x & 31, r = l & 15;
  A += (size_t)blockIdx.y * 16 * K;
  B += (size_t)blockIdx.x * 16 * K;
  float8_t acc = {};
  for (int k = 0; k < K; k += 16) {
    half16_t a = *(const half16_t*)&A[r * K + k], b = *(const half16_t*)&B[r * K + k];
    acc = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, acc);
  }
  for (int i = 0; i < 8; i++) C[(blockIdx.y * 16 + 2 * i + (l >> 4)) * N + blockIdx.x * 16 + r] = acc[i];
}

extern "C" __global__ void bgemm_wmma(const short16_t* A, const short16_t* B, float8_t* C, int K) {
  int l = threadIdx.x & 31;
  float8_t acc = {};
  for (int k = 0; k < K; k++)
    acc = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(A[k * 32 + l], B[k * 32 + l], acc);
  C[l] = acc;
}

extern "C" __global__ void hgemm_wmma16(const half16_t* A, const half16_t* B, half16_t* C, int K) {
  int l = threadIdx.x & 31;
  half16_t acc = {};
  for (int k = 0; k < K; k++)
    acc = __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(A[k * 32 + l], B[k * 32 + l], acc, false);
  C[l] = acc;
}

extern "C" __global__ void i8gemm_wmma(const int4_t* A, const int4_t* B,
                                       int __attribute__((ext_vector_type(8))) * C, int K) {
  int l = threadIdx.x & 31;
  int __attribute__((ext_vector_type(8))) acc = {};
  for (int k = 0; k < K; k++)
    acc = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, A[k * 32 + l], true, B[k * 32 + l], acc, false);
  C[l] = acc;
}
#endif
