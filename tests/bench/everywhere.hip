#include <hip/hip_runtime.h>

#ifndef FACTOR
#define FACTOR 2
#endif

// Each result is wrong where this is built with another FACTOR.
#define SCALE(name, type)                                                                   \
  extern "C" __global__ void name(const type* in, type* out, unsigned long long count) {    \
    const unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; \
    if (i < count) out[i] = in[i] * (type)(FACTOR);                                         \
  }

SCALE(scale_f32, float)
SCALE(scale_f64, double)
SCALE(scale_f16, _Float16)
SCALE(scale_i64, long long)
