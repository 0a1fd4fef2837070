// dst = x * y and, with a second matrix of the same shape, dst_gate = gate * y: the up and gate matrices of a
// feed-forward block share their activations, and so do the key and value projections.
#include <hip/hip_runtime.h>

#include "dot.h"
#include "wave.h"

#define LANES_PER_ROW 8

extern "C" __global__ void __launch_bounds__(64)
    mul_mat_vec_q(const block_q8_0* __restrict__ x, const block_q8_0* __restrict__ gate,
                  const block_q8_1* __restrict__ y, float* __restrict__ dst, float* __restrict__ dst_gate,
                  int rows, int blocks_per_row) {
  const int row = blockIdx.x * (blockDim.x / LANES_PER_ROW) + threadIdx.x / LANES_PER_ROW;
  const int lane = threadIdx.x % LANES_PER_ROW;
  const bool use_gate = gate != nullptr;

  float sum = 0.0f;
  float sum_gate = 0.0f;
  if (row < rows) {
    for (int b = lane; b < blocks_per_row; b += LANES_PER_ROW) {
      const size_t at = (size_t)row * blocks_per_row + b;
      const block_q8_0* bx = x + at;
      const block_q8_0* bg = gate + at;
      const block_q8_1* by = y + b;

      int dot = 0;
      int dot_gate = 0;
#pragma unroll
      for (int i = 0; i < QK / 4; ++i) {
        const int u = get_int_b4(by->qs, i);
        dot = dp4a(get_int_b2(bx->qs, i), u, dot);
        if (use_gate) {
          dot_gate = dp4a(get_int_b2(bg->qs, i), u, dot_gate);
        }
      }

      const float d = half_to_float(by->d);
      sum += half_to_float(bx->d) * d * (float)dot;
      if (use_gate) {
        sum_gate += half_to_float(bg->d) * d * (float)dot_gate;
      }
    }
  }

  sum = group_sum(sum, LANES_PER_ROW);
  sum_gate = group_sum(sum_gate, LANES_PER_ROW);
  if (row < rows && lane == 0) {
    dst[row] = sum;
    if (use_gate) {
      dst_gate[row] = sum_gate;
    }
  }
}
