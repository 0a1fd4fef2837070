// A shared library with kernels of its own, which modules.hip opens while it runs. One has the name of a kernel of the
// program's, and does something else.
#include "check.h"

__device__ int calls;

static __global__ void twice(int* values) {
  values[threadIdx.x] *= 2;
  if (threadIdx.x == 0) calls += 1;
}

__global__ void from_plugin(int* values, int add) { values[threadIdx.x] += add; }

extern "C" int plugin_run(int* values, int n) {
  twice<<<1, n>>>(values);
  from_plugin<<<1, n>>>(values, 1);
  if (hipDeviceSynchronize() != hipSuccess) return -1;
  int total = 0;
  return hipMemcpyFromSymbol(&total, HIP_SYMBOL(calls), sizeof total) == hipSuccess ? total : -1;
}
