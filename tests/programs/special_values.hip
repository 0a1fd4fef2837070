#include <hip/hip_runtime.h>

// NaN, infinities and zeros of both signs, by position.
extern "C" __global__ void special(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  switch (i % 5) {
    case 0:
      out[i] = x[i] - x[i] + 0.0f;
      break;
    case 1:
      out[i] = -0.0f * x[i];
      break;
    case 2:
      out[i] = __int_as_float(0x7fc00000 | (i & 0xff));
      break;
    case 3:
      out[i] = __int_as_float(0x7f800000);
      break;
    default:
      out[i] = x[i];
  }
}
