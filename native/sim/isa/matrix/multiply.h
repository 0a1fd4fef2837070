// D = A x B + C on the registers of a wave. The hardware's order of additions is not documented:
// here every element starts from C and adds its products in the order of k, each with one rounding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "sim/isa/float_ops.h"
#include "sim/isa/matrix/operands.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL::matrix {

// BLGP: which lane's B a lane works with.
inline int blgp_lane(unsigned blgp, int lane) {
  switch (blgp) {
    case 1:
      return lane % 32;
    case 2:
      return lane % 32 + 32;
    case 3:
      return (lane + 16) % 64;
    case 0:
      return lane;
    default:
      return lane % 16 + 16 * (static_cast<int>(blgp) - 4);
  }
}

// Where row i of block b lies in D: `lane` and up, in register `reg` (64-bit results: pair `reg`).
struct Place {
  int reg, lane;
};
template <int M, int N, int Height>
constexpr Place place(int i, int b) {
  constexpr int kPerRegister = kWave / N;  // groups of Height rows side by side
  constexpr int kBlocks = std::max(1, kWave / (N * M / Height));
  return {b * (M * N / kWave) + i / (Height * kPerRegister) * Height + i % Height,
          b % kBlocks * N + i / Height % kPerRegister * kBlocks * N};
}

// acc[0..N) += a[k] * b[k][0..N) for all k, for R rows at once.
template <int N, int K, int R>
inline void rows(const float* const (&a)[R], int a_stride, const float* b, float* const (&acc)[R]) {
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (N % 8 == 0) {
    __m256 sum[R][N / 8];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < N / 8; ++v) sum[r][v] = _mm256_loadu_ps(acc[r] + 8 * v);
    for (int k = 0; k < K; ++k)
#pragma GCC unroll 8
      for (int v = 0; v < N / 8; ++v) {
        const __m256 right = _mm256_loadu_ps(b + k * N + 8 * v);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
          sum[r][v] = _mm256_fmadd_ps(_mm256_broadcast_ss(a[r] + k * a_stride), right, sum[r][v]);
      }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < N / 8; ++v) _mm256_storeu_ps(acc[r] + 8 * v, sum[r][v]);
    return;
  }
#endif
  for (int r = 0; r < R; ++r)
    for (int k = 0; k < K; ++k)
      for (int j = 0; j < N; ++j) acc[r][j] = fma32(a[r][k * a_stride], b[k * N + j], acc[r][j]);
}

template <int N, int K, int R>
inline void rows(const std::int32_t* const (&a)[R], int a_stride, const std::int32_t* b,
                 std::int32_t* const (&acc)[R]) {
  for (int r = 0; r < R; ++r)
    for (int k = 0; k < K; ++k) {
      const std::uint32_t left = static_cast<std::uint32_t>(a[r][k * a_stride]);
      for (int j = 0; j < N; ++j)
        acc[r][j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(acc[r][j]) +
                                              left * static_cast<std::uint32_t>(b[k * N + j]));
    }
}

template <int N, int K, int R>
inline void rows(const double* const (&a)[R], int a_stride, const double* b, double* const (&acc)[R]) {
  for (int r = 0; r < R; ++r)
    for (int k = 0; k < K; ++k)
      for (int j = 0; j < N; ++j) acc[r][j] = std::fma(a[r][k * a_stride], b[k * N + j], acc[r][j]);
}

struct Modifiers {
  unsigned cbsz = 0, abid = 0, blgp = 0;
};

// 32-bit results. `d` holds C already, register after register.
template <class KindA, class KindB, int M, int N, int K, int Blocks>
void accumulate(const MatrixOperand<KindA, M, K, Blocks>& a, const MatrixOperand<KindB, N, K, Blocks>& b,
                std::uint32_t* d, Modifiers modifiers) {
  using Compute = typename KindA::Compute;
  using Element [[gnu::may_alias]] = Compute;
  constexpr int kTogether = N >= 32 ? 2 : 4;
  for (int block = 0; block < Blocks; ++block) {
    // CBSZ: blocks in groups of 2^cbsz work with the A of the group's block ABID.
    const int from =
        ((block >> modifiers.cbsz << modifiers.cbsz) + static_cast<int>(modifiers.abid)) % Blocks;
    for (int i = 0; i < M; i += kTogether) {
      const Compute* left[kTogether];
      Compute* out[kTogether];
      for (int r = 0; r < kTogether; ++r) {
        const Place p = place<M, N, 4>(i + r, block);
        left[r] = &a.at[from][0][i + r];
        out[r] = reinterpret_cast<Element*>(d + p.reg * kWave + p.lane);
      }
      rows<N, K, kTogether>(left, M, &b.at[block][0][0], out);
    }
  }
}

// f64 results, in register pairs.
template <int M, int N, int K, int Blocks>
void accumulate_f64(const MatrixOperand<F64, M, K, Blocks>& a, const MatrixOperand<F64, N, K, Blocks>& b,
                    std::uint32_t* d) {
  for (int block = 0; block < Blocks; ++block)
    for (int i = 0; i < M; ++i) {
      const Place p = place<M, N, 1>(i, block);
      std::uint32_t* low = d + 2 * p.reg * kWave + p.lane;
      std::uint32_t* high = low + kWave;
      double sum[N];
      for (int j = 0; j < N; ++j)
        sum[j] = std::bit_cast<double>(static_cast<std::uint64_t>(high[j]) << 32 | low[j]);
      const double* left[1] = {&a.at[block][0][i]};
      double* out[1] = {sum};
      rows<N, K, 1>(left, M, &b.at[block][0][0], out);
      for (int j = 0; j < N; ++j) {
        const auto bits = std::bit_cast<std::uint64_t>(sum[j]);
        low[j] = static_cast<std::uint32_t>(bits);
        high[j] = static_cast<std::uint32_t>(bits >> 32);
      }
    }
}

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL::matrix
