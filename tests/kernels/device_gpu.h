// device.h for AMDGPU: what HIP's headers would give, by compiler builtins alone.
#pragma once

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __host__ __attribute__((host))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]

// Hidden arguments (code object v5 and later): block counts at 0, 4, 8, group sizes at 12, 14, 16.
#define HIDDEN_ARGS ((const __attribute__((address_space(4))) char*)__builtin_amdgcn_implicitarg_ptr())
#define HIDDEN(type, offset) (*(const __attribute__((address_space(4))) type*)(HIDDEN_ARGS + (offset)))
#define INDEX_TYPE(name, vx, vy, vz)                                  \
  struct name {                                                       \
    struct X {                                                        \
      __device__ __forceinline__ operator uint() const { return vx; } \
    } x;                                                              \
    struct Y {                                                        \
      __device__ __forceinline__ operator uint() const { return vy; } \
    } y;                                                              \
    struct Z {                                                        \
      __device__ __forceinline__ operator uint() const { return vz; } \
    } z;                                                              \
  }
INDEX_TYPE(ThreadIndex, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
           __builtin_amdgcn_workitem_id_z());
INDEX_TYPE(BlockIndex, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
           __builtin_amdgcn_workgroup_id_z());
INDEX_TYPE(BlockSize, HIDDEN(ushort, 12), HIDDEN(ushort, 14), HIDDEN(ushort, 16));
INDEX_TYPE(GridSize, HIDDEN(uint, 0), HIDDEN(uint, 4), HIDDEN(uint, 8));
extern const __device__ __attribute__((weak)) ThreadIndex threadIdx;
extern const __device__ __attribute__((weak)) BlockIndex blockIdx;
extern const __device__ __attribute__((weak)) BlockSize blockDim;
extern const __device__ __attribute__((weak)) GridSize gridDim;

#define warpSize __builtin_amdgcn_wavefrontsize()

static __device__ __forceinline__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

static __device__ __forceinline__ void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }

static __device__ __forceinline__ int __lane_id() {
  return warpSize == 64 ? __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0))
                        : __builtin_amdgcn_mbcnt_lo(~0u, 0);
}

#if defined(__gfx1100__)
static __device__ __forceinline__ u64 __ballot(bool p) { return __builtin_amdgcn_ballot_w32(p); }
#else
static __device__ __forceinline__ u64 __ballot(bool p) { return __builtin_amdgcn_ballot_w64(p); }
#endif
