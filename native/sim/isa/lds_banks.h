// How many cycles the LDS needs for one instruction: 32 banks of 4 bytes, so 32 dwords a cycle as long as no
// two different dwords of one cycle lie in the same bank (docs/simulator.md).
#pragma once

#include <array>

#include "sim/device/cost.h"
#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {

// Lanes go in groups of 32 dwords; a group takes as many cycles as its busiest bank has different dwords.
static inline unsigned count_bank_cycles(const u32* address, u64 exec, unsigned dwords) {
  const unsigned lanes_per_group = 32 / dwords;
  unsigned cycles = 0;
  for (unsigned first = 0; first < kLanes; first += lanes_per_group) {
    u32 seen[32][32];
    unsigned count[32] = {}, worst = 0;
    for (unsigned l = first; l < first + lanes_per_group && l < kLanes; ++l) {
      if ((exec >> l & 1u) == 0) continue;
      for (unsigned k = 0; k < dwords; ++k) {
        const u32 dword = address[l] / 4 + k, bank = dword % 32;
        bool known = false;
        for (unsigned n = 0; n < count[bank] && !known; ++n) known = seen[bank][n] == dword;
        if (known) continue;
        seen[bank][count[bank]++] = dword;
        worst = worst > count[bank] ? worst : count[bank];
      }
    }
    cycles += worst;
  }
  return cycles;
}

// The same, remembered by the pattern of the lanes relative to the first: moving all of them changes nothing.
static inline unsigned bank_cycles(const u32* address, u64 exec, unsigned dwords) {
  struct Known {
    u64 pattern = 0;
    unsigned dwords = 0, cycles = 0;
  };
  thread_local Known known[256];
  alignas(64) static constexpr auto kWeights = [] {
    std::array<std::array<u32, kLanes>, 2> w{};
    u32 x = 0x9E3779B9u;
    for (auto& row : w)
      for (u32& y : row) {
        x = x * 1664525u + 1013904223u;
        y = x | 1u;
      }
    return w;
  }();
  // Lanes that do not take part must not matter, so patterns of fewer lanes are not remembered.
  if (exec != ~0ull) return count_bank_cycles(address, exec, dwords);
  const u32 origin = address[0];
  u32 h0 = 0, h1 = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    const u32 d = address[l] - origin;
    h0 += d * kWeights[0][l];
    h1 += (d ^ d >> 9) * kWeights[1][l];
  }
  const u64 pattern = static_cast<u64>(h1) << 32 | h0;
  Known& k = known[(h0 ^ h0 >> 16 ^ h0 >> 24 ^ dwords) & 255u];
  if (k.pattern != pattern || k.dwords != dwords)
    k = {pattern, dwords, count_bank_cycles(address, exec, dwords)};
  return k.cycles;
}

// `times`: elements a lane, all at one distance from the address.
static inline void charge_lds(Wave& w, const u32* address, unsigned dwords, unsigned times = 1) {
  const unsigned cycles = bank_cycles(address, w.exec(), dwords) * times;
  w.time.lds_access(cycles, w.costs->lds_latency);
}

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
