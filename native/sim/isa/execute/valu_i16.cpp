// 16-bit integers outside of VOP3P. VOP2 forms clear the upper half of the destination; the forms with op_sel
// that came with gfx9 write one half and keep the other.
#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

// Op::f(i64...) on extended halves gives the exact result; clamp saturates it to 16 bits.
template <class Op, unsigned N, bool Signed, bool Keep>
void int16_op(Wave& w, const Inst& i) {
  Reg t[3];
  const u32* s[3] = {};
  for (unsigned n = 0; n < N; ++n) s[n] = lanes32(w, i.src[n], t[n]);
  const bool clamp = i.has(Inst::clamp), high = i.op_sel & 8;
  const u32* old = w.v[i.dst].lane;
  write32(w, i.dst, [&](unsigned l) {
    i64 v[3] = {};
    for (unsigned n = 0; n < N; ++n) {
      const u32 raw = s[n][l] >> (i.op_sel >> n & 1u) * 16;
      v[n] = Signed ? static_cast<i64>(static_cast<i16>(raw)) : static_cast<i64>(static_cast<u16>(raw));
    }
    i64 r = Op::f(v[0], v[1], v[2]);
    if (clamp) {
      constexpr i64 kLow = Signed ? -32768 : 0, kHigh = Signed ? 32767 : 65535;
      r = r < kLow ? kLow : r > kHigh ? kHigh : r;
    }
    const u32 half = static_cast<u32>(r) & 0xFFFF;
    if (high) return (old[l] & 0xFFFF) | half << 16;
    return Keep ? (old[l] & 0xFFFF0000) | half : half;
  });
}

// Two halves and a 32-bit addend.
template <bool Signed>
void mad_32_16(Wave& w, const Inst& i) {
  const unsigned s0 = (i.op_sel & 1u) * 16, s1 = (i.op_sel >> 1 & 1u) * 16;
  const bool clamp = i.has(Inst::clamp);
  map3(w, i, [=](u32 a, u32 b, u32 c) {
    if (Signed) {
      i64 r = static_cast<i64>(static_cast<i16>(a >> s0)) * static_cast<i16>(b >> s1) + static_cast<i32>(c);
      if (clamp) r = r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : r;
      return static_cast<u32>(r);
    }
    u64 r = static_cast<u64>(static_cast<u16>(a >> s0)) * static_cast<u16>(b >> s1) + c;
    if (clamp && r > UINT32_MAX) r = UINT32_MAX;
    return static_cast<u32>(r);
  });
}

#define OP(name, expression)                                                               \
  struct name {                                                                            \
    static i64 f([[maybe_unused]] i64 a, [[maybe_unused]] i64 b, [[maybe_unused]] i64 c) { \
      return expression;                                                                   \
    }                                                                                      \
  }
OP(Add, a + b);
OP(Sub, a - b);
OP(SubRev, b - a);
OP(Mul, a* b);
OP(Mad, a* b + c);
OP(Lshl, b << (a & 15));
OP(Shr, b >> (a & 15));
OP(Min, a < b ? a : b);
OP(Max, a > b ? a : b);
OP(Min3, Min::f(Min::f(a, b, 0), c, 0));
OP(Max3, Max::f(Max::f(a, b, 0), c, 0));
OP(Med3, Max::f(Min::f(a, b, 0), Min::f(Max::f(a, b, 0), c, 0), 0));

}  // namespace

KERNCAP_SIM_FAMILY(
    valu_i16, {"v_add_u16", int16_op<Add, 2, false, false>}, {"v_sub_u16", int16_op<Sub, 2, false, false>},
    {"v_subrev_u16", int16_op<SubRev, 2, false, false>}, {"v_mul_lo_u16", int16_op<Mul, 2, false, false>},
    {"v_lshlrev_b16", int16_op<Lshl, 2, false, false>}, {"v_lshrrev_b16", int16_op<Shr, 2, false, false>},
    {"v_ashrrev_i16", int16_op<Shr, 2, true, false>}, {"v_min_u16", int16_op<Min, 2, false, false>},
    {"v_max_u16", int16_op<Max, 2, false, false>}, {"v_min_i16", int16_op<Min, 2, true, false>},
    {"v_max_i16", int16_op<Max, 2, true, false>}, {"v_add_i16", int16_op<Add, 2, true, true>},
    {"v_sub_i16", int16_op<Sub, 2, true, true>}, {"v_mad_u16", int16_op<Mad, 3, false, true>},
    {"v_mad_i16", int16_op<Mad, 3, true, true>}, {"v_mad_legacy_u16", int16_op<Mad, 3, false, false>},
    {"v_mad_legacy_i16", int16_op<Mad, 3, true, false>}, {"v_min3_i16", int16_op<Min3, 3, true, true>},
    {"v_min3_u16", int16_op<Min3, 3, false, true>}, {"v_max3_i16", int16_op<Max3, 3, true, true>},
    {"v_max3_u16", int16_op<Max3, 3, false, true>}, {"v_med3_i16", int16_op<Med3, 3, true, true>},
    {"v_med3_u16", int16_op<Med3, 3, false, true>}, {"v_mad_u32_u16", mad_32_16<false>},
    {"v_mad_i32_i16", mad_32_16<true>})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
