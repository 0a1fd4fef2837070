// Atomics on global memory of every width and kind, a CAS loop, a spin lock and a last-block reduction.
#include "device.h"

extern "C" __global__ void atoms(int* i, uint* u, float* f, double* d, u64* q, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  int r = atomicAdd(&i[0], 1);
  atomicMax(&i[1], t);
  atomicMin(&u[0], (uint)t);
  atomicOr(&u[1], 1u << (t & 31));
  atomicAdd(f, 1.0f);
  atomicAdd(d, 0.5);
  atomicAdd(q, (u64)t);
  atomicExch(&u[2], (uint)t);
  u[4 + r] = r;
  __threadfence();
  uint o = u[3], a;
  do {
    a = o;
    o = atomicCAS(&u[3], a, a * 3 + 1);
  } while (o != a);
  u64 o2 = q[1], a2;
  do {
    a2 = o2;
    o2 = atomicCAS(&q[1], a2, a2 + 5);
  } while (o2 != a2);
}

extern "C" __global__ void fatomicmax(float* f, const float* x) { atomicMax(f, x[threadIdx.x]); }

extern "C" __global__ void hatomic(half2_t* p, half2_t v) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
#if !defined(__gfx1100__)
  __builtin_amdgcn_global_atomic_fadd_v2f16((half2_t __attribute__((address_space(1)))*)p, v);
#endif
}

extern "C" __global__ void spin_lock(int* lock, int* data) {
  if (threadIdx.x == 0) {
    while (__scoped_atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_DEVICE) != 0)
      __builtin_amdgcn_s_sleep(2);
    *data += 1;
    __scoped_atomic_store_n(lock, 0, __ATOMIC_RELEASE, __MEMORY_SCOPE_DEVICE);
  }
}

extern "C" __global__ void lastblock(const float* x, float* part, float* out, uint* ctr) {
  float v = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int k = warpSize / 2; k; k >>= 1) v += __shfl_xor(v, k);
  __shared__ bool last;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = v;
    __threadfence();
    last = __scoped_atomic_fetch_add(ctr, 1u, __ATOMIC_ACQ_REL, __MEMORY_SCOPE_DEVICE) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float s = 0;
    for (uint i = 0; i < gridDim.x; i++) s += part[i];
    *out = s;
  }
}

extern "C" __global__ void sysatom(int* f) {
  __scoped_atomic_fetch_add(f, 1, __ATOMIC_SEQ_CST, __MEMORY_SCOPE_SYSTEM);
  __scoped_atomic_store_n(f + 1, 1, __ATOMIC_RELEASE, __MEMORY_SCOPE_SYSTEM);
}
