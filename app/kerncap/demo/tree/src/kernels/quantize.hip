// Between floats and quantised blocks.
#include <hip/hip_runtime.h>

#include "dot.h"
#include "wave.h"

// One lane a value, QK lanes a block; n is a multiple of QK.
extern "C" __global__ void quantize_q8_1(const float* __restrict__ x, block_q8_1* __restrict__ dst, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  const float d = group_max(fabsf(v), QK) / 127.0f;
  block_q8_1* block = dst + i / QK;
  block->qs[i % QK] = d == 0.0f ? 0 : (int8_t)roundf(v / d);
  if (i % QK == 0) {
    block->d = __builtin_bit_cast(uint16_t, (_Float16)d);
    block->pad = 0;
  }
}

// dst = row `*token` of a quantised table.
extern "C" __global__ void get_row(const block_q8_0* __restrict__ table, const int* __restrict__ token,
                                   float* __restrict__ dst, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const block_q8_0* block = table + (size_t)*token * (n / QK) + i / QK;
  dst[i] = half_to_float(block->d) * (float)block->qs[i % QK];
}
