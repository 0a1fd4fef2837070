// Rotary positions and attention over the cache of keys and values.
#include <hip/hip_runtime.h>

#include "wave.h"

// Rotates pairs of x in place: one workgroup a head, one lane a pair.
extern "C" __global__ void rope(float* x, int position, int head_size, float theta) {
  const int half_size = head_size / 2;
  const int i = threadIdx.x;
  if (i >= half_size) return;
  float* head = x + blockIdx.x * head_size;
  const float frequency = __expf(-2.0f * i / head_size * __logf(theta));
  const float angle = position * frequency;
  const float c = __cosf(angle), s = __sinf(angle);
  const float a = head[i], b = head[i + half_size];
  head[i] = a * c - b * s;
  head[i + half_size] = a * s + b * c;
}

// One workgroup of head_size lanes a query head. Scores are kept in LDS: `positions` floats, given at the launch.
extern "C" __global__ void attention(const float* __restrict__ q, const float* __restrict__ keys,
                                     const float* __restrict__ values, float* __restrict__ dst, int positions,
                                     int kv_heads, int group) {
  extern __shared__ float scores[];
  const int head_size = blockDim.x;
  const int lane = threadIdx.x;
  const int kv_head = blockIdx.x / group;
  const float query = q[blockIdx.x * head_size + lane] / sqrtf((float)head_size);
  const size_t stride = (size_t)kv_heads * head_size;
  const float* k = keys + kv_head * head_size + lane;
  const float* v = values + kv_head * head_size + lane;

  float highest = -3.0e38f;
  for (int p = 0; p < positions; ++p) {
    float score = query * k[p * stride];
    for (int mask = warpSize / 2; mask > 0; mask /= 2) score += __shfl_xor(score, mask);
    if (lane == 0) scores[p] = score;
    highest = fmaxf(highest, score);
  }
  __syncthreads();

  float total = 0.0f;
  float out = 0.0f;
  for (int p = 0; p < positions; ++p) {
    const float weight = __expf(scores[p] - highest);
    total += weight;
    out += weight * v[p * stride];
  }
  dst[blockIdx.x * head_size + lane] = out / total;
}
