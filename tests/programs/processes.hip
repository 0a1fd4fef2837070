#include <hip/hip_runtime.h>

extern "C" __global__ void count_up(int* x, int step) { x[threadIdx.x] += step; }
