// Dot products of quantised blocks, four 8-bit products at a time.
#pragma once

#include "../quants.h"

static __device__ __forceinline__ float half_to_float(uint16_t bits) {
  return (float)__builtin_bit_cast(_Float16, bits);
}

// Four values of a weight block, which is aligned to 2 bytes.
static __device__ __forceinline__ int get_int_b2(const int8_t* qs, int i) {
  const uint16_t* x16 = (const uint16_t*)qs;
  return x16[2 * i] | (x16[2 * i + 1] << 16);
}

// Four values of an activation block, which is aligned to 4 bytes.
static __device__ __forceinline__ int get_int_b4(const int8_t* qs, int i) { return ((const int*)qs)[i]; }

static __device__ __forceinline__ int dp4a(int a, int b, int c) {
#if defined(__gfx1100__) || defined(__gfx1101__) || defined(__gfx1102__)
  return __builtin_amdgcn_sudot4(true, a, true, b, c, false);
#else
  return __builtin_amdgcn_sdot4(a, b, c, false);
#endif
}
