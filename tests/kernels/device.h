// The part of HIP's device side that the kernels here use, in two forms: device_gpu.h for
// `clang -x hip --cuda-device-only -nogpuinc -nogpulib`, host_grid.h for the host (the oracle).
#pragma once

typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long long u64;
typedef long long i64;
typedef __SIZE_TYPE__ size_t;
typedef _Float16 half;
typedef _Float16 half2_t __attribute__((ext_vector_type(2)));
typedef _Float16 half4_t __attribute__((ext_vector_type(4)));
typedef _Float16 half8_t __attribute__((ext_vector_type(8)));
typedef _Float16 half16_t __attribute__((ext_vector_type(16)));
typedef short short4_t __attribute__((ext_vector_type(4)));
typedef short short16_t __attribute__((ext_vector_type(16)));
typedef float float2_t __attribute__((ext_vector_type(2)));
typedef float float4_t __attribute__((ext_vector_type(4)));
typedef float float8_t __attribute__((ext_vector_type(8)));
typedef float float16_t __attribute__((ext_vector_type(16)));
typedef double double4_t __attribute__((ext_vector_type(4)));
typedef int int4_t __attribute__((ext_vector_type(4)));
typedef int int2_t __attribute__((ext_vector_type(2)));

#if defined(__HIP__)
#include "device_gpu.h"
#else
#include "host_grid.h"
#endif

static __device__ __forceinline__ int __shfl_i(int v, int src) {
  return __builtin_amdgcn_ds_bpermute(src << 2, v);
}

static __device__ __forceinline__ float __shfl(float v, int src) {
  return __builtin_bit_cast(float, __shfl_i(__builtin_bit_cast(int, v), src));
}

static __device__ __forceinline__ float __shfl_xor(float v, int m) { return __shfl(v, __lane_id() ^ m); }

static __device__ __forceinline__ float __shfl_down(float v, int d) {
  int l = __lane_id();
  return __shfl(v, (l + d < (int)warpSize) ? l + d : l);
}

template <class T>
static __device__ __forceinline__ T atomicAdd(T* p, T v) {
  return __scoped_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

template <class T>
static __device__ __forceinline__ T atomicMax(T* p, T v) {
  return __scoped_atomic_fetch_max(p, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

template <class T>
static __device__ __forceinline__ T atomicMin(T* p, T v) {
  return __scoped_atomic_fetch_min(p, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

template <class T>
static __device__ __forceinline__ T atomicOr(T* p, T v) {
  return __scoped_atomic_fetch_or(p, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

template <class T>
static __device__ __forceinline__ T atomicExch(T* p, T v) {
  return __scoped_atomic_exchange_n(p, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

template <class T>
static __device__ __forceinline__ T atomicCAS(T* p, T c, T v) {
  __scoped_atomic_compare_exchange_n(p, &c, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                     __MEMORY_SCOPE_DEVICE);
  return c;
}

#define expf(x) __builtin_expf(x)
#define logf(x) __builtin_logf(x)
#define sqrtf(x) __builtin_sqrtf(x)
#define rsqrtf(x) __builtin_amdgcn_rsqf(x)
#define fmaxf(a, b) __builtin_fmaxf(a, b)
#define fminf(a, b) __builtin_fminf(a, b)
#define fabsf(a) __builtin_fabsf(a)
#define sqrt(x) __builtin_sqrt(x)
