// Elements of 2, 3 or 4 dwords a lane to and from registers of one dword a lane: 4 lanes at a time, by
// shuffles.
#pragma once

#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {

using Quad = u32 __attribute__((vector_size(16)));

// `at(l)` is where lane l's N dwords lie.
template <unsigned N, class At>
static inline void gather_elements(At at, Reg* dst) {
  static_assert(N >= 2 && N <= 4);
  if constexpr (N == 4) {
    for (unsigned l = 0; l < kLanes; l += 4) {
      Quad r[4];
      for (unsigned n = 0; n < 4; ++n) std::memcpy(&r[n], at(l + n), 16);
      const Quad ab0 = __builtin_shuffle(r[0], r[1], Quad{0, 4, 1, 5}),
                 ab1 = __builtin_shuffle(r[0], r[1], Quad{2, 6, 3, 7});
      const Quad cd0 = __builtin_shuffle(r[2], r[3], Quad{0, 4, 1, 5}),
                 cd1 = __builtin_shuffle(r[2], r[3], Quad{2, 6, 3, 7});
      const Quad out[4] = {
          __builtin_shuffle(ab0, cd0, Quad{0, 1, 4, 5}), __builtin_shuffle(ab0, cd0, Quad{2, 3, 6, 7}),
          __builtin_shuffle(ab1, cd1, Quad{0, 1, 4, 5}), __builtin_shuffle(ab1, cd1, Quad{2, 3, 6, 7})};
      for (unsigned k = 0; k < 4; ++k) std::memcpy(&dst[k].lane[l], &out[k], 16);
    }
  } else {
    for (unsigned l = 0; l < kLanes; ++l) {
      u32 x[N];
      std::memcpy(x, at(l), 4 * N);
      for (unsigned k = 0; k < N; ++k) dst[k].lane[l] = x[k];
    }
  }
}

template <unsigned N, class At>
static inline void scatter_elements(At at, const Reg* data) {
  static_assert(N >= 2 && N <= 4);
  if constexpr (N == 4) {
    for (unsigned l = 0; l < kLanes; l += 4) {
      Quad r[4];
      for (unsigned k = 0; k < 4; ++k) std::memcpy(&r[k], &data[k].lane[l], 16);
      const Quad ab0 = __builtin_shuffle(r[0], r[1], Quad{0, 4, 1, 5}),
                 ab1 = __builtin_shuffle(r[0], r[1], Quad{2, 6, 3, 7});
      const Quad cd0 = __builtin_shuffle(r[2], r[3], Quad{0, 4, 1, 5}),
                 cd1 = __builtin_shuffle(r[2], r[3], Quad{2, 6, 3, 7});
      const Quad out[4] = {
          __builtin_shuffle(ab0, cd0, Quad{0, 1, 4, 5}), __builtin_shuffle(ab0, cd0, Quad{2, 3, 6, 7}),
          __builtin_shuffle(ab1, cd1, Quad{0, 1, 4, 5}), __builtin_shuffle(ab1, cd1, Quad{2, 3, 6, 7})};
      for (unsigned n = 0; n < 4; ++n) std::memcpy(at(l + n), &out[n], 16);
    }
  } else {
    for (unsigned l = 0; l < kLanes; ++l) {
      u32 x[N];
      for (unsigned k = 0; k < N; ++k) x[k] = data[k].lane[l];
      std::memcpy(at(l), x, 4 * N);
    }
  }
}

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
