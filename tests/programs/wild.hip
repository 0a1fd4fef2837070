#include <hip/hip_runtime.h>

// Every lane writes its number `shift` elements further than it should.
extern "C" __global__ void scatter(int* out, long shift, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i + shift] = i;
}
