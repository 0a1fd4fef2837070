// Sums and maxima over groups of lanes.
#pragma once

static __device__ __forceinline__ float group_sum(float v, int width) {
  for (int mask = width / 2; mask > 0; mask /= 2) v += __shfl_xor(v, mask);
  return v;
}

static __device__ __forceinline__ float group_max(float v, int width) {
  for (int mask = width / 2; mask > 0; mask /= 2) v = fmaxf(v, __shfl_xor(v, mask));
  return v;
}
