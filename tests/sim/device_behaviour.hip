// Kernels that show how the device behaves: faults, progress between workgroups, private and flat memory, cycles.
#include "device.h"

extern "C" __global__ void store_at(int* p, long long index, int value) { p[index] = value; }
extern "C" __global__ void load_at(const int* p, long long index, int* out) { *out = p[index]; }

extern "C" __global__ void lane_out_of_range(int* p, int n) {
  int i = threadIdx.x;
  p[i == 37 ? n : i] = i;
}

extern "C" __global__ void lds_out_of_range(int* p, int n) {
  __shared__ int s[64];
  s[threadIdx.x + n] = 1;
  __syncthreads();
  p[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void trap_if(const int* p, int value) {
  if (p[threadIdx.x] == value) __builtin_trap();
}

extern "C" __global__ void endless(volatile int* p) {
  while (*p == 0) {
  }
}

// Workgroup n waits for workgroup n + 1: only if all of them make progress does it end.
extern "C" __global__ void chain(int* flag, int groups) {
  int g = blockIdx.x;
  if (threadIdx.x == 0) {
    if (g + 1 < groups)
      while (__scoped_atomic_load_n(&flag[g + 1], __ATOMIC_ACQUIRE, __MEMORY_SCOPE_DEVICE) == 0) {
      }
    __scoped_atomic_store_n(&flag[g], 1, __ATOMIC_RELEASE, __MEMORY_SCOPE_DEVICE);
  }
}

// Every third byte.
extern "C" __global__ void sparse_bytes(unsigned char* p) { p[3 * (blockIdx.x * blockDim.x + threadIdx.x)] = 1; }

extern "C" __global__ void copy_strided(const float* a, float* b, int stride, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  long long j = (long long)i * stride % n;
  b[j] = a[j] + 1;
}

extern "C" __global__ void lds_strided(float* out, int stride) {
  __shared__ float s[64 * 34];
#pragma unroll
  for (int k = 0; k < 64; k++) {
    s[threadIdx.x * stride + k] = threadIdx.x;
    asm volatile("" ::: "memory");
  }
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

// The same result with the branch inside the inner loop, and hoisted out of it.
extern "C" __global__ void branch_inside(const float* a, float* o, int mode, int n) {
  float x = a[threadIdx.x];
  for (int k = 0; k < n; k++) {
#ifdef __OPTIMIZE__
    asm volatile("" : "+v"(x), "+s"(mode));
#endif
    if (mode == 1) x = x * 1.0009765625f + 0.5f;
    else x = x * 0.9990234375f - 0.5f;
  }
  o[threadIdx.x] = x;
}
extern "C" __global__ void branch_hoisted(const float* a, float* o, int mode, int n) {
  float x = a[threadIdx.x];
  float m = mode == 1 ? 1.0009765625f : 0.9990234375f, c = mode == 1 ? 0.5f : -0.5f;
  for (int k = 0; k < n; k++) {
    asm volatile("" : "+v"(x));
    x = x * m + c;
  }
  o[threadIdx.x] = x;
}

static __device__ __noinline__ int depth(int n, int* sum) {
  int local[8];
  for (int k = 0; k < 8; k++) local[k] = n + k;
  *sum += local[n & 7];
  return n == 0 ? *sum : depth(n - 1, sum) + local[1];
}
extern "C" __global__ void recursion(int* out) {
  int sum = 0;
  out[threadIdx.x] = depth(threadIdx.x % 8, &sum);
}

extern "C" __global__ void divide_f32(const float* a, const float* b, float* q) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  q[i] = a[i] / b[i];
}
extern "C" __global__ void divide_f64(const double* a, const double* b, double* q) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  q[i] = a[i] / b[i];
}
extern "C" __global__ void root_f64(const double* a, double* q) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  q[i] = __builtin_sqrt(a[i]);
}
