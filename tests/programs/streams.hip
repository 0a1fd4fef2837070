#include <hip/hip_runtime.h>

// Busy for `rounds` rounds, or until *stop with rounds < 0.
extern "C" __global__ void spin(unsigned* state, long rounds, volatile int* stop) {
  unsigned v = state[threadIdx.x];
  for (long i = 0; rounds < 0 ? *stop == 0 : i < rounds; ++i) v = v * 1664525u + 1013904223u;
  state[threadIdx.x] = v;
}

extern "C" __global__ void target(int* out, int value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = value + i;
}
