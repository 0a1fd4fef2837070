#include <hip/hip_runtime.h>

// Time in proportion to `rounds`.
extern "C" __global__ void work_for(float* x, int rounds) {
  float v = x[threadIdx.x];
  for (int i = 0; i < rounds; ++i) v = v * 0.999f + 0.001f;
  x[threadIdx.x] = v;
}

extern "C" __global__ void tiny(float* x) { x[threadIdx.x] += 1.0f; }
