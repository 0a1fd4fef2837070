// MUBUF loads, stores and atomics without a format, and loads that go to LDS.
#include "sim/isa/buffer.h"

#include "sim/isa/atomic_ops.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

using namespace atomic;
using i8 = std::int8_t;

// LDS destination of a lane: M0[15:0], the immediate, 4 bytes a lane.
u64 lds_slot(Wave& w, const Inst& i, unsigned l) {
  return lds_address(w, (w.s[kSrcM0] & 0xFFFFu) + static_cast<u64>(static_cast<u32>(i.imm)) + 4 * l, 4,
                     static_cast<int>(l));
}

template <unsigned N>
void load(Wave& w, const Inst& i) {
  const BufferLanes b(w, i);
  Reg out[N] = {};
  for_pieces<false>(w, b, N, 4, [&](unsigned l, unsigned k, u64 address) {
    std::memcpy(&out[k].lane[l], reinterpret_cast<const void*>(address), 4);
  });
  for (unsigned k = 0; k < N; ++k) write32(w, i.dst + k, [&](unsigned l) { return out[k].lane[l]; });
}
template <unsigned N>
void store(Wave& w, const Inst& i) {
  const BufferLanes b(w, i);
  for_pieces<true>(w, b, N, 4, [&](unsigned l, unsigned k, u64 address) {
    std::memcpy(reinterpret_cast<void*>(address), &w.v[i.data0 + k].lane[l], 4);
  });
}
template <class T>
void read_small(Wave& w, const Inst& i, Reg& out) {
  const BufferLanes b(w, i);
  for_pieces<false>(w, b, 1, sizeof(T), [&](unsigned l, unsigned, u64 address) {
    T x;
    std::memcpy(&x, reinterpret_cast<const void*>(address), sizeof x);
    out.lane[l] = static_cast<u32>(static_cast<i32>(x));
  });
}
template <class T, Fill How>
void load_part(Wave& w, const Inst& i) {
  Reg out = {};
  read_small<T>(w, i, out);
  write32(w, i.dst, [&](unsigned l) { return fill(out.lane[l], How); });
}
template <class T, bool High>
void store_part(Wave& w, const Inst& i) {
  const BufferLanes b(w, i);
  for_pieces<true>(w, b, 1, sizeof(T), [&](unsigned l, unsigned, u64 address) {
    const auto x = static_cast<T>(High ? w.v[i.data0].lane[l] >> 16 : w.v[i.data0].lane[l]);
    std::memcpy(reinterpret_cast<void*>(address), &x, sizeof x);
  });
}
template <class T>
void load_lds(Wave& w, const Inst& i) {
  Reg out = {};
  read_small<T>(w, i, out);
  for (u64 e = w.exec(); e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    std::memcpy(reinterpret_cast<void*>(lds_slot(w, i, l)), &out.lane[l], 4);
  }
}
template <class T, Fill How>
Handler bind_load_part(Inst& i) {
  return i.has(Inst::lds) ? load_lds<T> : load_part<T, How>;
}
template <unsigned N>
Handler bind_load(Inst& i) {
  if (!i.has(Inst::lds)) return load<N>;
  return N == 1 ? load_lds<u32> : nullptr;
}

template <class T, class F>
void for_atomic(Wave& w, const Inst& i, F f) {
  const BufferLanes b(w, i);
  const bool returns = i.has(Inst::sc0);
  Reg lo = {}, hi = {};
  for_pieces<true>(w, b, 1, sizeof(T), [&](unsigned l, unsigned, u64 address) {
    require_aligned(address, sizeof(T), l);
    const T old = f(l, address);
    lo.lane[l] = static_cast<u32>(old);
    if constexpr (sizeof(T) == 8) hi.lane[l] = static_cast<u32>(old >> 32);
  });
  if (!returns) return;
  write32(w, i.dst, [&](unsigned l) { return lo.lane[l]; });
  if constexpr (sizeof(T) == 8) write32(w, i.dst + 1, [&](unsigned l) { return hi.lane[l]; });
}
template <class T, class Op>
void atomic_op(Wave& w, const Inst& i) {
  for_atomic<T>(w, i, [&](unsigned l, u64 address) {
    const T data = read_lane<T>(w, i.data0, l);
    return update<T>(address, [data](T old) { return Op::f(old, data); });
  });
}
template <class T>
void cmpswap(Wave& w, const Inst& i) {
  for_atomic<T>(w, i, [&](unsigned l, u64 address) {
    const T data = read_lane<T>(w, i.data0, l), compare = read_lane<T>(w, i.data0 + sizeof(T) / 4, l);
    return update<T>(address, [=](T old) { return old == compare ? data : old; });
  });
}

#define PART(name, T, How) {"buffer_load_" name, nullptr, bind_load_part<T, Fill::How>}
#define INT(name, Op) \
  {"buffer_atomic_" name, atomic_op<u32, Op>}, { "buffer_atomic_" name "_x2", atomic_op<u64, Op> }

}  // namespace

KERNCAP_SIM_FAMILY(
    buffer, {"buffer_load_dword", nullptr, bind_load<1>}, {"buffer_load_dwordx2", nullptr, bind_load<2>},
    {"buffer_load_dwordx3", nullptr, bind_load<3>}, {"buffer_load_dwordx4", nullptr, bind_load<4>},
    {"buffer_store_dword", store<1>}, {"buffer_store_dwordx2", store<2>}, {"buffer_store_dwordx3", store<3>},
    {"buffer_store_dwordx4", store<4>}, PART("ubyte", u8, dword), PART("sbyte", i8, dword),
    PART("ushort", u16, dword), PART("sshort", i16, dword), PART("ubyte_d16", u8, low_half),
    PART("ubyte_d16_hi", u8, high_half), PART("sbyte_d16", i8, low_half), PART("sbyte_d16_hi", i8, high_half),
    PART("short_d16", u16, low_half), PART("short_d16_hi", u16, high_half),
    {"buffer_store_byte", store_part<u8, false>}, {"buffer_store_byte_d16_hi", store_part<u8, true>},
    {"buffer_store_short", store_part<u16, false>}, {"buffer_store_short_d16_hi", store_part<u16, true>},
    INT("swap", Swap), INT("add", Add), INT("sub", Sub), INT("smin", Smin), INT("umin", Umin),
    INT("smax", Smax), INT("umax", Umax), INT("and", And), INT("or", Or), INT("xor", Xor), INT("inc", Inc),
    INT("dec", Dec), {"buffer_atomic_cmpswap", cmpswap<u32>}, {"buffer_atomic_cmpswap_x2", cmpswap<u64>},
    {"buffer_atomic_add_f32", atomic_op<u32, AddF32>}, {"buffer_atomic_pk_add_f16", atomic_op<u32, PkAddF16>},
    {"buffer_atomic_add_f64", atomic_op<u64, AddF64>}, {"buffer_atomic_min_f64", atomic_op<u64, MinF64>},
    {"buffer_atomic_max_f64", atomic_op<u64, MaxF64>})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
