// v_smfmac: D += A x B where A holds two of every four elements along k. Two bits of an index register say
// where each one belongs. CBSZ 0: ABID picks the set of indices; otherwise the lowest set is used.
#pragma once

#include "sim/isa/matrix/multiply.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL::matrix {

template <class KindA, class KindB, int M, int N, int K>
void accumulate_sparse(const MatrixOperand<KindA, M, K / 2, 1>& a, const MatrixOperand<KindB, N, K, 1>& b,
                       const std::uint32_t* index, std::uint32_t* d, Modifiers modifiers) {
  using Compute = typename KindA::Compute;
  using Element [[gnu::may_alias]] = Compute;
  constexpr int kElements = MatrixOperand<KindA, M, K / 2, 1>::kElements;  // a lane
  const unsigned set = modifiers.cbsz ? 0 : modifiers.abid * 2 * kElements % 32;
  for (int i = 0; i < M; ++i) {
    const Place p = place<M, N, 4>(i, 0);
    Compute* out[1] = {reinterpret_cast<Element*>(d + p.reg * kWave + p.lane)};
    for (int stored = 0; stored < K / 2; ++stored) {
      const std::uint32_t bits = index[stored / kElements * M + i] >> set;
      const int k = stored / 2 * 4 + static_cast<int>(bits >> 2 * (stored % kElements) & 3);
      const Compute* left[1] = {&a.at[0][stored][i]};
      rows<N, 1, 1>(left, 0, &b.at[0][k][0], out);
    }
  }
}

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL::matrix
