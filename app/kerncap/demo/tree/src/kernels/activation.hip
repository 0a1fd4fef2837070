// The gated activation of a feed-forward block, and the choice of the next token.
#include <hip/hip_runtime.h>

#include "wave.h"

// dst[slot] = silu(gate[slot]) * up[slot]; slots are blockIdx.y, in_stride and n values apart.
extern "C" __global__ void silu_mul(const float* __restrict__ up, const float* __restrict__ gate,
                                    float* __restrict__ dst, int n, int in_stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int slot = blockIdx.y;
  const float g = gate[slot * in_stride + i];
  dst[slot * n + i] = g / (1.0f + __expf(-g)) * up[slot * in_stride + i];
}

// One workgroup of one wavefront: the index of the highest of n values, the lowest index of equal ones.
extern "C" __global__ void argmax(const float* __restrict__ x, int* __restrict__ dst, int n) {
  float best = -3.0e38f;
  int at = n;
  for (int i = threadIdx.x; i < n; i += warpSize) {
    if (x[i] > best) {
      best = x[i];
      at = i;
    }
  }
  for (int mask = warpSize / 2; mask > 0; mask /= 2) {
    const float other = __shfl_xor(best, mask);
    const int other_at = __shfl_xor(at, mask);
    if (other > best || (other == best && other_at < at)) {
      best = other;
      at = other_at;
    }
  }
  if (threadIdx.x == 0) *dst = at;
}
