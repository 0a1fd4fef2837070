// The quantised formats, read by the host and by the kernels: 32 values share one scale, as in llama.cpp's
// q8_0 and q8_1.
#pragma once

#include <stdint.h>

#define QK 32

// Weights. 34 bytes, so that rows of blocks are aligned to 2 bytes only.
struct block_q8_0 {
  uint16_t d;  // scale, as the bits of an IEEE half
  int8_t qs[QK];
};

// Activations.
struct block_q8_1 {
  uint16_t d;
  uint16_t pad;
  int8_t qs[QK];
};

static_assert(sizeof(block_q8_0) == 34 && sizeof(block_q8_1) == 36, "the kernels count on these sizes");
