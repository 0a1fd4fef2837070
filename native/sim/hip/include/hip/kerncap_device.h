/* The device side of HIP that kerncap's own programs use, on clang's builtins alone: no device libraries, so
   that clang needs nothing beside it (-nogpuinc -nogpulib). f32 transcendentals are the hardware's. */
#ifndef KERNCAP_HIP_DEVICE_H
#define KERNCAP_HIP_DEVICE_H

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

#define KERNCAP_DEVICE static __device__ __attribute__((always_inline, unused))

/* Work-item and workgroup numbers. Sizes come from the implicit arguments (LLVM AMDGPUUsage, code object v5):
   block counts at byte 0, block sizes at byte 12. */
#define KERNCAP_IMPLICIT(type, offset)       \
  (*(const __attribute__((address_space(4))) \
     type*)((const __attribute__((address_space(4))) char*)__builtin_amdgcn_implicitarg_ptr() + (offset)))

struct KerncapThreadIdx {
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  __declspec(property(get = get_z)) unsigned z;
  KERNCAP_DEVICE unsigned get_x() { return __builtin_amdgcn_workitem_id_x(); }
  KERNCAP_DEVICE unsigned get_y() { return __builtin_amdgcn_workitem_id_y(); }
  KERNCAP_DEVICE unsigned get_z() { return __builtin_amdgcn_workitem_id_z(); }
};
struct KerncapBlockIdx {
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  __declspec(property(get = get_z)) unsigned z;
  KERNCAP_DEVICE unsigned get_x() { return __builtin_amdgcn_workgroup_id_x(); }
  KERNCAP_DEVICE unsigned get_y() { return __builtin_amdgcn_workgroup_id_y(); }
  KERNCAP_DEVICE unsigned get_z() { return __builtin_amdgcn_workgroup_id_z(); }
};
struct KerncapBlockDim {
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  __declspec(property(get = get_z)) unsigned z;
  KERNCAP_DEVICE unsigned get_x() { return KERNCAP_IMPLICIT(unsigned short, 12); }
  KERNCAP_DEVICE unsigned get_y() { return KERNCAP_IMPLICIT(unsigned short, 14); }
  KERNCAP_DEVICE unsigned get_z() { return KERNCAP_IMPLICIT(unsigned short, 16); }
};
struct KerncapGridDim {
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  __declspec(property(get = get_z)) unsigned z;
  KERNCAP_DEVICE unsigned get_x() { return KERNCAP_IMPLICIT(unsigned, 0); }
  KERNCAP_DEVICE unsigned get_y() { return KERNCAP_IMPLICIT(unsigned, 4); }
  KERNCAP_DEVICE unsigned get_z() { return KERNCAP_IMPLICIT(unsigned, 8); }
};
static constexpr __device__ KerncapThreadIdx threadIdx{};
static constexpr __device__ KerncapBlockIdx blockIdx{};
static constexpr __device__ KerncapBlockDim blockDim{};
static constexpr __device__ KerncapGridDim gridDim{};

#define warpSize ((int)__builtin_amdgcn_wavefrontsize())

/* Vectors, as HIP names them. Members only: no arithmetic. */
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
KERNCAP_DEVICE float2 make_float2(float x, float y) { return {x, y}; }
KERNCAP_DEVICE float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
KERNCAP_DEVICE int2 make_int2(int x, int y) { return {x, y}; }
KERNCAP_DEVICE int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }

/* Barriers and fences */
KERNCAP_DEVICE void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
KERNCAP_DEVICE void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
KERNCAP_DEVICE void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
KERNCAP_DEVICE void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

/* Between the lanes of a wavefront */
KERNCAP_DEVICE int __lane_id() {
  const unsigned low = __builtin_amdgcn_mbcnt_lo(~0u, 0);
  return warpSize == 64 ? __builtin_amdgcn_mbcnt_hi(~0u, low) : low;
}
KERNCAP_DEVICE int kerncap_read_lane(int value, int lane) {
  return __builtin_amdgcn_ds_bpermute(lane << 2, value);
}
KERNCAP_DEVICE unsigned kerncap_read_lane(unsigned value, int lane) {
  return __builtin_amdgcn_ds_bpermute(lane << 2, static_cast<int>(value));
}
KERNCAP_DEVICE float kerncap_read_lane(float value, int lane) {
  return __builtin_bit_cast(float, kerncap_read_lane(__builtin_bit_cast(int, value), lane));
}
/* A lane outside the group of `width` lanes reads its own value. */
template <typename T>
KERNCAP_DEVICE T __shfl(T value, int lane, int width = warpSize) {
  const int self = __lane_id();
  return kerncap_read_lane(value, (self & ~(width - 1)) | (lane & (width - 1)));
}
template <typename T>
KERNCAP_DEVICE T __shfl_xor(T value, int mask, int width = warpSize) {
  const int self = __lane_id();
  const int other = self ^ mask;
  return kerncap_read_lane(value, other < ((self + width) & ~(width - 1)) ? other : self);
}
template <typename T>
KERNCAP_DEVICE T __shfl_down(T value, unsigned delta, int width = warpSize) {
  const int self = __lane_id();
  const int other = self + static_cast<int>(delta);
  return kerncap_read_lane(value, (self & (width - 1)) + static_cast<int>(delta) < width ? other : self);
}
template <typename T>
KERNCAP_DEVICE T __shfl_up(T value, unsigned delta, int width = warpSize) {
  const int self = __lane_id();
  const int other = self - static_cast<int>(delta);
  return kerncap_read_lane(value, other >= (self & ~(width - 1)) ? other : self);
}
#if __AMDGCN_WAVEFRONT_SIZE == 32 || defined(__GFX10__) || defined(__GFX11__) || defined(__GFX12__)
KERNCAP_DEVICE unsigned long long __ballot(int predicate) {
  return __builtin_amdgcn_ballot_w32(predicate != 0);
}
#else
KERNCAP_DEVICE unsigned long long __ballot(int predicate) {
  return __builtin_amdgcn_ballot_w64(predicate != 0);
}
#endif

/* Atomics, relaxed at device scope */
#define KERNCAP_ATOMIC(name, builtin)                                        \
  template <typename T>                                                      \
  KERNCAP_DEVICE T name(T* address, T value) {                               \
    return builtin(address, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE); \
  }
KERNCAP_ATOMIC(atomicAdd, __scoped_atomic_fetch_add)
KERNCAP_ATOMIC(atomicSub, __scoped_atomic_fetch_sub)
KERNCAP_ATOMIC(atomicMax, __scoped_atomic_fetch_max)
KERNCAP_ATOMIC(atomicMin, __scoped_atomic_fetch_min)
KERNCAP_ATOMIC(atomicAnd, __scoped_atomic_fetch_and)
KERNCAP_ATOMIC(atomicOr, __scoped_atomic_fetch_or)
KERNCAP_ATOMIC(atomicXor, __scoped_atomic_fetch_xor)
KERNCAP_ATOMIC(atomicExch, __scoped_atomic_exchange_n)
template <typename T>
KERNCAP_DEVICE T atomicCAS(T* address, T expected, T desired) {
  __scoped_atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                     __MEMORY_SCOPE_DEVICE);
  return expected;
}

/* Arithmetic */
KERNCAP_DEVICE float fabsf(float x) { return __builtin_fabsf(x); }
KERNCAP_DEVICE float fmaxf(float x, float y) { return __builtin_fmaxf(x, y); }
KERNCAP_DEVICE float fminf(float x, float y) { return __builtin_fminf(x, y); }
KERNCAP_DEVICE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
KERNCAP_DEVICE float sqrtf(float x) { return __builtin_sqrtf(x); }
KERNCAP_DEVICE float floorf(float x) { return __builtin_floorf(x); }
KERNCAP_DEVICE float rintf(float x) { return __builtin_rintf(x); }
KERNCAP_DEVICE float roundf(float x) { return __builtin_roundf(x); }
KERNCAP_DEVICE float rsqrtf(float x) { return __builtin_amdgcn_rsqf(x); }
KERNCAP_DEVICE float expf(float x) { return __builtin_expf(x); }
KERNCAP_DEVICE float logf(float x) { return __builtin_logf(x); }
KERNCAP_DEVICE float __expf(float x) { return __builtin_expf(x); }
KERNCAP_DEVICE float __logf(float x) { return __builtin_logf(x); }
KERNCAP_DEVICE float __sinf(float x) { return __builtin_sinf(x); }
KERNCAP_DEVICE float __cosf(float x) { return __builtin_cosf(x); }
KERNCAP_DEVICE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
KERNCAP_DEVICE unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
KERNCAP_DEVICE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
KERNCAP_DEVICE float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
KERNCAP_DEVICE int __popc(unsigned x) { return __builtin_popcount(x); }
KERNCAP_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
KERNCAP_DEVICE int __ffs(int x) { return __builtin_ffs(x); }
KERNCAP_DEVICE int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
KERNCAP_DEVICE int min(int x, int y) { return x < y ? x : y; }
KERNCAP_DEVICE int max(int x, int y) { return x > y ? x : y; }
KERNCAP_DEVICE unsigned min(unsigned x, unsigned y) { return x < y ? x : y; }
KERNCAP_DEVICE unsigned max(unsigned x, unsigned y) { return x > y ? x : y; }

KERNCAP_DEVICE long long clock64() { return static_cast<long long>(__builtin_readcyclecounter()); }
KERNCAP_DEVICE long long wall_clock64() { return static_cast<long long>(__builtin_readsteadycounter()); }

#endif
