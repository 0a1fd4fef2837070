// DS atomics, and the DS instructions that exchange values between lanes. A workgroup runs on one host
// thread, so LDS needs no atomic instructions of the host.
#include "sim/isa/addresses.h"
#include "sim/isa/atomic_ops.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

using namespace atomic;

void charge(Wave& w, unsigned bytes_per_lane) {
  const unsigned lanes = static_cast<unsigned>(std::popcount(w.exec()));
  const unsigned cycles =
      (lanes * bytes_per_lane + w.costs->lds_bytes_per_cycle - 1) / w.costs->lds_bytes_per_cycle;
  w.time.lds_access(cycles, w.costs->lds_latency);
}

u64 offset16(const Inst& i) { return static_cast<u64>(i.imm) | static_cast<u64>(i.imm1) << 8; }

// f(lane, old) -> new, for each active lane in order; `Returns` the value before to dst.
template <class T, bool Returns, class F>
void for_lanes(Wave& w, const Inst& i, F f) {
  charge(w, sizeof(T));
  alignas(64) u32 at[kLanes];
  std::memcpy(at, w.v[i.addr].lane, sizeof at);  // dst may be the address register
  for (u64 e = w.exec(); e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    const u64 offset = at[l] + offset16(i);
    const u64 address = lds_address(w, offset, sizeof(T), static_cast<int>(l));
    require_aligned(offset, sizeof(T), l);
    T old;
    std::memcpy(&old, reinterpret_cast<const void*>(address), sizeof(T));
    const T value = f(l, old);
    std::memcpy(reinterpret_cast<void*>(address), &value, sizeof(T));
    if constexpr (Returns) write_lane<T>(w, i.dst, l, old);
  }
}

template <class T, class Op, bool Returns>
void ds_op(Wave& w, const Inst& i) {
  for_lanes<T, Returns>(w, i, [&](unsigned l, T old) { return Op::f(old, read_lane<T>(w, i.data0, l)); });
}

// Op::f(old, data0, data1).
template <class T, class Op, bool Returns>
void ds_op2(Wave& w, const Inst& i) {
  for_lanes<T, Returns>(w, i, [&](unsigned l, T old) {
    return Op::f(old, read_lane<T>(w, i.data0, l), read_lane<T>(w, i.data1, l));
  });
}
struct Mskor {
  template <class T>
  static T f(T old, T mask, T data) {
    return (old & ~mask) | data;
  }
};
struct Cmpst {
  template <class T>
  static T f(T old, T compare, T data) {
    return old == compare ? data : old;
  }
};
// Compared as floats: -0 equals 0, NaN nothing.
struct CmpstF {
  static u32 f(u32 old, u32 compare, u32 data) { return as_f32(old) == as_f32(compare) ? data : old; }
  static u64 f(u64 old, u64 compare, u64 data) { return as_f64(old) == as_f64(compare) ? data : old; }
};
struct Wrap {
  static u32 f(u32 old, u32 limit, u32 data) { return old >= limit ? old - limit : old + data; }
};
// Each half of memory is replaced where the top bit of its half of the data is set.
struct CondExchange {
  static u64 f(u64 old, u64 data) {
    const auto half = [](u32 was, u32 now) { return now >> 31 ? now & 0x7FFFFFFF : was; };
    return static_cast<u64>(half(static_cast<u32>(old >> 32), static_cast<u32>(data >> 32))) << 32 |
           half(static_cast<u32>(old), static_cast<u32>(data));
  }
};

// Two exchanges at two offsets, in elements (or 64 of them).
template <class T, unsigned Stride>
void exchange2(Wave& w, const Inst& i) {
  charge(w, 2 * sizeof(T));
  alignas(64) u32 at[kLanes];
  std::memcpy(at, w.v[i.addr].lane, sizeof at);
  for (u64 e = w.exec(); e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    const T data[2] = {read_lane<T>(w, i.data0, l), read_lane<T>(w, i.data1, l)};
    const std::int32_t offsets[2] = {i.imm, i.imm1};
    T old[2];
    for (unsigned n = 0; n < 2; ++n) {
      const u64 offset = at[l] + static_cast<u64>(offsets[n]) * sizeof(T) * Stride;
      require_aligned(offset, sizeof(T), l);
      void* p = reinterpret_cast<void*>(lds_address(w, offset, sizeof(T), static_cast<int>(l)));
      std::memcpy(&old[n], p, sizeof(T));
      std::memcpy(p, &data[n], sizeof(T));
    }
    for (unsigned n = 0; n < 2; ++n) write_lane<T>(w, i.dst + n * sizeof(T) / 4, l, old[n]);
  }
}

// The number of active lanes is added to or taken from a counter at M0[15:0] + offset, once.
template <bool Append>
void count(Wave& w, const Inst& i) {
  charge(w, 4);
  const u64 exec = w.exec();
  if (exec == 0) return;
  const u64 offset = (w.s[kSrcM0] & 0xFFFFu) + offset16(i);
  require_aligned(offset, 4, 0);
  void* p = reinterpret_cast<void*>(lds_address(w, offset, 4, -1));
  u32 old;
  std::memcpy(&old, p, 4);
  const u32 lanes = static_cast<u32>(std::popcount(exec)), value = Append ? old + lanes : old - lanes;
  std::memcpy(p, &value, 4);
  write32(w, i.dst, [=](unsigned) { return old; });
}

// ---- Between lanes
// ------------------------------------------------------------------------------------------

// Pull: lane l gets the data of lane address/4; 0 from a lane outside EXEC.
void bpermute(Wave& w, const Inst& i) {
  charge(w, 4);
  const u32 offset = static_cast<u32>(offset16(i));
  const u32* address = w.v[i.addr].lane;
  const u32* data = w.v[i.data0].lane;
  const u32* m = w.mask();
  Reg out;
  for (unsigned l = 0; l < kLanes; ++l) {
    const unsigned from = (address[l] + offset) / 4 & 63u;
    out.lane[l] = data[from] & m[from];
  }
  write32(w, i.dst, [&](unsigned l) { return out.lane[l]; });
}
// Push: lane l's data goes to lane address/4; of several the highest lane wins; lanes nobody sends to get 0.
void permute(Wave& w, const Inst& i) {
  charge(w, 4);
  const u32 offset = static_cast<u32>(offset16(i));
  Reg out = {};
  for (u64 e = w.exec(); e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    out.lane[(w.v[i.addr].lane[l] + offset) / 4 & 63u] = w.v[i.data0].lane[l];
  }
  write32(w, i.dst, [&](unsigned l) { return out.lane[l]; });
}
// Patterns of ds_swizzle_b32: a permutation of each four lanes; a rotation of each 32; or and, or, xor masks
// of the lane number.
void swizzle(Wave& w, const Inst& i) {
  charge(w, 4);
  const u32 pattern = static_cast<u32>(offset16(i));
  // The value that is exchanged is named by the address field.
  const u32* data = w.v[i.addr].lane;
  const u32* m = w.mask();
  Reg out;
  for (unsigned l = 0; l < kLanes; ++l) {
    unsigned from = l;
    if ((pattern & 0xFF00) == 0x8000) {
      from = (l & ~3u) + (pattern >> (l & 3u) * 2 & 3u);
    } else if (pattern >= 0xC000) {
      const unsigned fixed = pattern & 31u, by = pattern >> 5 & 31u, in = l & 31u;
      const unsigned rotated = pattern >> 10 & 1u ? in - by : in + by;
      from = (l & 32u) | (in & fixed) | (rotated & ~fixed & 31u);
    } else {
      const unsigned in = l & 31u;
      from = (l & 32u) | (((in & pattern) | (pattern >> 5 & 31u)) ^ (pattern >> 10 & 31u));
    }
    out.lane[l] = data[from & 63u] & m[from & 63u];
  }
  write32(w, i.dst, [&](unsigned l) { return out.lane[l]; });
}

#define PAIR(name, type, T, Op) \
  {"ds_" name "_" type, ds_op<T, Op, false>}, { "ds_" name "_rtn_" type, ds_op<T, Op, true> }
#define BOTH(name, type, Op) PAIR(name, type "32", u32, Op), PAIR(name, type "64", u64, Op)
#define PAIR2(name, type, T, Op) \
  {"ds_" name "_" type, ds_op2<T, Op, false>}, { "ds_" name "_rtn_" type, ds_op2<T, Op, true> }

}  // namespace

KERNCAP_SIM_FAMILY(
    lds_atomics, BOTH("add", "u", Add), BOTH("sub", "u", Sub), BOTH("rsub", "u", Rsub), BOTH("inc", "u", Inc),
    BOTH("dec", "u", Dec), BOTH("min", "i", Smin), BOTH("max", "i", Smax), BOTH("min", "u", Umin),
    BOTH("max", "u", Umax), BOTH("and", "b", And), BOTH("or", "b", Or), BOTH("xor", "b", Xor),
    PAIR("add", "f32", u32, AddF32), PAIR("min", "f32", u32, MinF32), PAIR("max", "f32", u32, MaxF32),
    PAIR("add", "f64", u64, AddF64), PAIR("min", "f64", u64, MinF64), PAIR("max", "f64", u64, MaxF64),
    PAIR("pk_add", "f16", u32, PkAddF16), PAIR("pk_add", "bf16", u32, PkAddBf16),
    {"ds_wrxchg_rtn_b32", ds_op<u32, Swap, true>}, {"ds_wrxchg_rtn_b64", ds_op<u64, Swap, true>},
    {"ds_wrxchg2_rtn_b32", exchange2<u32, 1>}, {"ds_wrxchg2_rtn_b64", exchange2<u64, 1>},
    {"ds_wrxchg2st64_rtn_b32", exchange2<u32, 64>}, {"ds_wrxchg2st64_rtn_b64", exchange2<u64, 64>},
    PAIR2("mskor", "b32", u32, Mskor), PAIR2("mskor", "b64", u64, Mskor), PAIR2("cmpst", "b32", u32, Cmpst),
    PAIR2("cmpst", "b64", u64, Cmpst), PAIR2("cmpst", "f32", u32, CmpstF), PAIR2("cmpst", "f64", u64, CmpstF),
    {"ds_wrap_rtn_b32", ds_op2<u32, Wrap, true>}, {"ds_condxchg32_rtn_b64", ds_op<u64, CondExchange, true>},
    {"ds_append", count<true>}, {"ds_consume", count<false>}, {"ds_bpermute_b32", bpermute},
    {"ds_permute_b32", permute}, {"ds_swizzle_b32", swizzle})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
