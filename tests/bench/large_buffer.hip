#include <hip/hip_runtime.h>

// Changes one word in each of gridDim * blockDim equal parts.
extern "C" __global__ void touch(unsigned long long* data, unsigned long long words) {
  const unsigned long long part = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned long long parts = (unsigned long long)gridDim.x * blockDim.x;
  data[part * (words / parts)] += 1;
}
