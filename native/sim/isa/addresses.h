// Vector memory addressing: where each lane's access goes, checked against the allocations before anything
// moves.
#pragma once

#include "sim/device/cost.h"
#include "sim/isa/lanes.h"
#include "sim/isa/transpose.h"
#include "sim/within.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {

// Where the 64 lanes of one memory instruction point. Lanes outside EXEC are not looked at.
struct Addresses {
  bool contiguous = false;       // all 64 lanes active, lane l at first + l * size
  u64 first = 0;                 // host address of lane 0, if contiguous
  alignas(64) u64 lane[kLanes];  // host addresses, if not contiguous
  u64 exec = 0;
};

// Cost of one vector memory instruction: the distinct lines its lanes touch, in lane order. A line counts
// again only if a different one was touched in between by an earlier neighbour.
static inline unsigned count_lines(const Addresses& a, unsigned size, unsigned line_bytes) {
  if (a.contiguous) {
    const u64 last = a.first + 64ull * size - 1;
    return static_cast<unsigned>(last / line_bytes - a.first / line_bytes + 1);
  }
  unsigned lines = 0;
  u64 recent[4] = {~0ull, ~0ull, ~0ull, ~0ull};
  for (u64 e = a.exec; e != 0; e &= e - 1) {
    const u64 line = a.lane[std::countr_zero(e)] / line_bytes;
    if (line == recent[0] || line == recent[1] || line == recent[2] || line == recent[3]) continue;
    recent[lines++ % 4] = line;
  }
  return lines;
}

static inline void charge_vmem(Wave& w, const Addresses& a, unsigned size, unsigned latency) {
  const CostTable& t = *w.costs;
  const unsigned lines = count_lines(a, size, t.line_bytes);
  w.time.lines += lines;
  w.time.bytes += static_cast<u64>(lines) * t.line_bytes;
  w.time.vm_access(lines * t.cycles_per_line, latency);
}

// Checks all active lanes: one test where they lie in one allocation, else lane by lane (which names the
// lane).
static inline void require_lanes(Wave& w, const Addresses& a, unsigned size, bool write) {
  u64 low = ~0ull, high = 0;
  if (a.exec == ~0ull) {
    for (unsigned l = 0; l < kLanes; ++l) {
      low = a.lane[l] < low ? a.lane[l] : low;
      high = a.lane[l] > high ? a.lane[l] : high;
    }
  } else {
    for (u64 e = a.exec; e != 0; e &= e - 1) {
      const u64 x = a.lane[std::countr_zero(e)];
      low = x < low ? x : low;
      high = x > high ? x : high;
    }
  }
  if (a.exec == 0 || (high + size > high && w.memory->covers(low, high + size, write))) return;
  for (u64 e = a.exec; e != 0; e &= e - 1) {
    const int l = std::countr_zero(e);
    w.memory->require(a.lane[l], size, write, l);
  }
}

// Host address of an offset into LDS, or into the lane's scratch.
static inline u64 lds_address(Wave& w, u64 offset, unsigned size, int lane) {
  if (!within(offset, size, w.lds_bytes)) [[unlikely]]
    throw Trouble{Fault::Kind::lds_out_of_range, lane, offset, size,
                  "the workgroup has " + std::to_string(w.lds_bytes) + " bytes of LDS"};
  return reinterpret_cast<u64>(w.lds) + offset;
}
static inline u64 scratch_address(Wave& w, u64 offset, unsigned size, unsigned lane, bool write) {
  if (!within(offset, size, w.scratch_lane_bytes)) [[unlikely]]
    throw Trouble{write ? Fault::Kind::memory_write : Fault::Kind::memory_read, static_cast<int>(lane),
                  kPrivateAperture + offset, size,
                  "a work-item has " + std::to_string(w.scratch_lane_bytes) + " bytes of private memory"};
  return reinterpret_cast<u64>(w.scratch) + static_cast<u64>(lane) * w.scratch_lane_bytes + offset;
}

// GLOBAL: a 64-bit VGPR pair, or an SGPR pair plus a 32-bit VGPR; and a signed immediate.
static inline void global_addresses(Wave& w, const Inst& i, unsigned size, bool write, Addresses* a) {
  const u64 imm = static_cast<u64>(static_cast<i64>(i.imm));
  const u32* lo = w.v[i.addr].lane;
  a->exec = w.exec();
  if (i.saddr != kNoSaddr) {
    const u64 base = w.s64(i.saddr) + imm;
    if (a->exec == ~0ull) {
      u32 differs = 0;
      for (unsigned l = 0; l < kLanes; ++l) differs |= lo[l] ^ (lo[0] + l * size);
      if (differs == 0 && lo[0] + 64ull * size <= 0xFFFFFFFFull) {
        a->first = base + lo[0];
        a->contiguous = w.memory->covers(a->first, a->first + 64ull * size, write);
        if (a->contiguous) return;
      }
    }
    for (unsigned l = 0; l < kLanes; ++l) a->lane[l] = base + lo[l];
  } else {
    const u32* hi = w.v[i.addr + 1].lane;
    if (a->exec == ~0ull) {
      u32 differs = 0;
      for (unsigned l = 0; l < kLanes; ++l) differs |= (lo[l] ^ (lo[0] + l * size)) | (hi[l] ^ hi[0]);
      if (differs == 0 && lo[0] + 64ull * size <= 0xFFFFFFFFull) {
        a->first = (static_cast<u64>(hi[0]) << 32 | lo[0]) + imm;
        a->contiguous = w.memory->covers(a->first, a->first + 64ull * size, write);
        if (a->contiguous) return;
      }
    }
    for (unsigned l = 0; l < kLanes; ++l) a->lane[l] = (static_cast<u64>(hi[l]) << 32 | lo[l]) + imm;
  }
  require_lanes(w, *a, size, write);
}

// FLAT: global memory, or the apertures of LDS and of private memory, lane by lane.
// Returns true where any lane went to an aperture (its bytes are then not global memory).
static inline bool flat_addresses(Wave& w, const Inst& i, unsigned size, bool write, Addresses* a,
                                  u64* global_lanes) {
  const u32* hi = w.v[i.addr + 1].lane;
  u32 aperture = 0;
  const u32* m = w.mask();
  for (unsigned l = 0; l < kLanes; ++l)
    aperture |= m[l] & ((hi[l] == static_cast<u32>(kSharedAperture >> 32) ? 1u : 0u) |
                        (hi[l] == static_cast<u32>(kPrivateAperture >> 32) ? 1u : 0u));
  *global_lanes = w.exec();
  if (aperture == 0) {
    global_addresses(w, i, size, write, a);
    return false;
  }
  const u32* lo = w.v[i.addr].lane;
  a->exec = w.exec();
  for (u64 e = a->exec; e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    const u64 address = (static_cast<u64>(hi[l]) << 32 | lo[l]) + static_cast<u64>(static_cast<i64>(i.imm));
    if (address >> 32 == kSharedAperture >> 32) {
      a->lane[l] = lds_address(w, address & 0xFFFFFFFFull, size, static_cast<int>(l));
    } else if (address >> 32 == kPrivateAperture >> 32) {
      a->lane[l] = scratch_address(w, address & 0xFFFFFFFFull, size, l, write);
    } else {
      w.memory->require(address, size, write, static_cast<int>(l));
      a->lane[l] = address;
      continue;
    }
    *global_lanes &= ~(1ull << l);
  }
  return true;
}

// Records what a store wrote, for the lanes that went to global memory.
static inline void log_store(Wave& w, const Addresses& a, unsigned size, u64 global_lanes) {
  if (w.memory->log == nullptr) [[likely]]
    return;
  if (a.contiguous) {
    w.memory->wrote(a.first, 64ull * size);
    return;
  }
  for (u64 e = a.exec & global_lanes; e != 0; e &= e - 1) w.memory->wrote(a.lane[std::countr_zero(e)], size);
}

// ---- Moving data, once the addresses are known

template <unsigned N>
static void load_dwords(Wave& w, const Addresses& a, unsigned dst) {
  if (a.contiguous) {
    const auto* p = reinterpret_cast<const u8*>(a.first);
    if constexpr (N == 1) {
      std::memcpy(w.v[dst].lane, p, 256);
    } else {
      gather_elements<N>([p](unsigned l) { return p + 4 * N * l; }, &w.v[dst]);
    }
    return;
  }
  for (u64 e = a.exec; e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    u32 x[N];
    std::memcpy(x, reinterpret_cast<const void*>(a.lane[l]), 4 * N);
    for (unsigned k = 0; k < N; ++k) w.v[dst + k].lane[l] = x[k];
  }
}
template <unsigned N>
static void store_dwords(Wave& w, const Addresses& a, unsigned data) {
  if (a.contiguous) {
    auto* p = reinterpret_cast<u8*>(a.first);
    if constexpr (N == 1) {
      std::memcpy(p, w.v[data].lane, 256);
    } else {
      scatter_elements<N>([p](unsigned l) { return p + 4 * N * l; }, &w.v[data]);
    }
    return;
  }
  for (u64 e = a.exec; e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    u32 x[N];
    for (unsigned k = 0; k < N; ++k) x[k] = w.v[data + k].lane[l];
    std::memcpy(reinterpret_cast<void*>(a.lane[l]), x, 4 * N);
  }
}

// How a value smaller than a dword fills its register: extended, or one half of it (d16). With ECC of the
// registers (sramecc+, as all simulated GPUs have it) the other half becomes zero.
enum class Fill : u8 { dword, low_half, high_half };
static inline u32 fill(u32 value, Fill how) {
  if (how == Fill::dword) return value;
  return how == Fill::low_half ? value & 0xFFFFu : value << 16;
}
template <class T, Fill How>
static void load_small(Wave& w, const Addresses& a, unsigned dst) {
  const auto one = [&](unsigned l, u64 address) {
    T x;
    std::memcpy(&x, reinterpret_cast<const void*>(address), sizeof x);
    w.v[dst].lane[l] = fill(static_cast<u32>(static_cast<i32>(x)), How);
  };
  if (a.contiguous) {
    for (unsigned l = 0; l < kLanes; ++l) one(l, a.first + l * sizeof(T));
  } else {
    for (u64 e = a.exec; e != 0; e &= e - 1)
      one(static_cast<unsigned>(std::countr_zero(e)), a.lane[std::countr_zero(e)]);
  }
}
template <class T, bool High>
static void store_small(Wave& w, const Addresses& a, unsigned data) {
  const auto one = [&](unsigned l, u64 address) {
    const auto x = static_cast<T>(High ? w.v[data].lane[l] >> 16 : w.v[data].lane[l]);
    std::memcpy(reinterpret_cast<void*>(address), &x, sizeof x);
  };
  if (a.contiguous) {
    for (unsigned l = 0; l < kLanes; ++l) one(l, a.first + l * sizeof(T));
  } else {
    for (u64 e = a.exec; e != 0; e &= e - 1)
      one(static_cast<unsigned>(std::countr_zero(e)), a.lane[std::countr_zero(e)]);
  }
}

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
