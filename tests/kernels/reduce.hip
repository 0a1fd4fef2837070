// Reductions by DPP, ds_swizzle, ds_bpermute, ballot and shuffles.
#include "device.h"

template <int C>
static __device__ __forceinline__ float dpp(float v) {
  return __builtin_bit_cast(float,
                            __builtin_amdgcn_update_dpp(0, __builtin_bit_cast(int, v), C, 0xf, 0xf, false));
}

extern "C" __global__ void red_dpp(const float* x, float* o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0;
  v += dpp<0x111>(v);
  v += dpp<0x112>(v);
  v += dpp<0x114>(v);
  v += dpp<0x118>(v);
#if !defined(__gfx1100__)
  v += dpp<0x142>(v);
  v += dpp<0x143>(v);
#else
  v += __builtin_bit_cast(float,
                          __builtin_amdgcn_permlanex16(0, __builtin_bit_cast(int, v), -1, -1, false, false));
#endif
  if (__lane_id() == (int)warpSize - 1) atomicAdd(o, v);
}

extern "C" __global__ void red_swz(const float* x, float* o) {
  float v = x[threadIdx.x];
  v += __builtin_bit_cast(float, __builtin_amdgcn_ds_swizzle(__builtin_bit_cast(int, v), 0x041f));
  v += __builtin_bit_cast(float, __builtin_amdgcn_ds_swizzle(__builtin_bit_cast(int, v), 0x081f));
  v += __builtin_bit_cast(float, __builtin_amdgcn_ds_swizzle(__builtin_bit_cast(int, v), 0x101f));
  v += __builtin_bit_cast(float, __builtin_amdgcn_ds_swizzle(__builtin_bit_cast(int, v), 0x201f));
  v += __builtin_bit_cast(float, __builtin_amdgcn_ds_swizzle(__builtin_bit_cast(int, v), 0x401f));
  o[threadIdx.x] = v;
}

extern "C" __global__ void red_bperm(const float* x, float* o) {
  __shared__ float s[32];
  int t = threadIdx.x;
  float v = x[blockIdx.x * blockDim.x + t];
  for (int m = warpSize / 2; m > 0; m >>= 1) v += __shfl_xor(v, m);
  if (__lane_id() == 0) s[t / warpSize] = v;
  __syncthreads();
  if (t == 0) {
    float a = 0;
    for (int i = 0; i < (int)(blockDim.x / warpSize); i++) a += s[i];
    o[blockIdx.x] = a;
  }
}

extern "C" __global__ void red_ballot(const int* x, int* o) {
  int t = threadIdx.x;
  u64 b = __ballot(x[t] > 3);
  int pc = __builtin_popcountll(b);
  int ff = __builtin_ctzll(b | 1ull << 63);
  o[t] = pc * 100 + ff + __builtin_amdgcn_readfirstlane(x[t]) + __builtin_amdgcn_readlane(x[t], 5) +
         __builtin_amdgcn_mbcnt_lo((uint)b, 0);
}

extern "C" __global__ void red_down(const float* x, float* o) {
  float v = x[threadIdx.x];
  for (int d = warpSize / 2; d > 0; d /= 2) v = fmaxf(v, __shfl_down(v, d));
  if (threadIdx.x == 0) o[0] = v;
}
