#include <hip/hip_runtime.h>

extern "C" __global__ void count(int* x) { x[threadIdx.x] += 1; }
