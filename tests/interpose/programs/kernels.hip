// Device code of the HSA programs in this folder.
#include <hip/hip_runtime.h>

// Raw dispatches have no implicit arguments, which is where blockDim would come from.
constexpr int kBlock = 64;

__device__ int counter = 5;
__constant__ int step = 3;

extern "C" __global__ void add_one(int* values, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < n) values[i] += 1;
}

extern "C" __global__ void add_two(int* values, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < n) values[i] += 2;
}

// Runs until the host stores a value that is not zero, and then writes a 7.
extern "C" __global__ void wait_for_host(const volatile int* flag, int* out) {
  while (*flag == 0) __builtin_amdgcn_s_sleep(8);
  if (threadIdx.x == 0) out[0] = 7;
}

extern "C" __global__ void use_variables(int* out) {
  if (threadIdx.x == 0) {
    const int before = __hip_atomic_fetch_add(&counter, step, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    __hip_atomic_fetch_max(out, before + step, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }
}

// Uses the buffer that printf and malloc of the device call the host through as their code does: the stack of free
// packets, its fourth word, counts each use. LLVM AMDGPUUsage, "Code Object V5 Hidden Kernel Arguments": its address is
// at byte 80 of them. With a threshold that no lane reaches it only has the buffer.
extern "C" __global__ void call_back(long* out, long from) {
  const long* hidden = static_cast<const long*>(__builtin_amdgcn_implicitarg_ptr());
  long* buffer = reinterpret_cast<long*>(hidden[10]);
  if (threadIdx.x == 0) *out = buffer != nullptr ? 1 : 2;
  if (threadIdx.x == 0 && from == 0) buffer[3] += 1l << 32;
}
