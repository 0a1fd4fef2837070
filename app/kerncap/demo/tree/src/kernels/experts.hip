// A mixture of experts: which ones a token uses, and products with their matrices, which lie anywhere in memory.
#include <hip/hip_runtime.h>

#include "dot.h"
#include "wave.h"

#define LANES_PER_ROW 8

// One wavefront: the `used` highest of n logits (n <= 32), with weights that sum to 1.
extern "C" __global__ void choose_experts(const float* __restrict__ logits, int* __restrict__ ids,
                                          float* __restrict__ weights, int n, int used) {
  const int lane = threadIdx.x;
  float v = lane < n ? logits[lane] : -3.0e38f;
  const float highest = group_max(v, 32);
  float total = 0.0f;
  for (int slot = 0; slot < used; ++slot) {
    const float best = group_max(v, 32);
    const int id = __ffs((int)__ballot(v == best)) - 1;
    const float weight = __expf(best - highest);
    total += weight;
    if (lane == 0) {
      ids[slot] = id;
      weights[slot] = weight;
    }
    if (lane == id) v = -3.0e38f;
  }
  if (lane == 0) {
    for (int slot = 0; slot < used; ++slot) weights[slot] /= total;
  }
}

// dst[slot] = matrices[ids[slot]] * y[slot]; slots are blockIdx.y. With y_stride 0 all slots share their activations.
extern "C" __global__ void __launch_bounds__(64)
    expert_mat_vec_q(const block_q8_0* const* __restrict__ matrices, const int* __restrict__ ids,
                     const block_q8_1* __restrict__ y, float* __restrict__ dst, int rows, int blocks_per_row,
                     int y_stride) {
  const int slot = blockIdx.y;
  const int row = blockIdx.x * (blockDim.x / LANES_PER_ROW) + threadIdx.x / LANES_PER_ROW;
  const int lane = threadIdx.x % LANES_PER_ROW;
  const block_q8_0* x = matrices[ids[slot]];
  y += slot * y_stride;

  float sum = 0.0f;
  if (row < rows) {
    for (int b = lane; b < blocks_per_row; b += LANES_PER_ROW) {
      const block_q8_0* bx = x + (size_t)row * blocks_per_row + b;
      const block_q8_1* by = y + b;
      int dot = 0;
#pragma unroll
      for (int i = 0; i < QK / 4; ++i) dot = dp4a(get_int_b2(bx->qs, i), get_int_b4(by->qs, i), dot);
      sum += half_to_float(bx->d) * half_to_float(by->d) * (float)dot;
    }
  }
  sum = group_sum(sum, LANES_PER_ROW);
  if (row < rows && lane == 0) dst[slot * rows + row] = sum;
}
