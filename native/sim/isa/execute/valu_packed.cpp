// VOP3P: two 16-bit or two 32-bit operations at once. OP_SEL says which half of each source makes the low
// result, OP_SEL_HI which makes the high one; NEG and NEG_HI likewise.
#include "sim/isa/float_ops.h"
#include "sim/isa/half.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

// ---- Two f16
// ------------------------------------------------------------------------------------------------

struct PkAdd {
  static float f(float a, float b, float) { return a + b; }
};
struct PkMul {
  static float f(float a, float b, float) { return a * b; }
};
struct PkFma {
  static float f(float a, float b, float c) { return fma_f16(a, b, c); }
};
struct PkMin {
  static float f(float a, float b, float) { return min32(a, b); }
};
struct PkMax {
  static float f(float a, float b, float) { return max32(a, b); }
};

template <class Op, unsigned N>
void half_result(Wave& w, const Inst& i, const u32* const (&source)[3], unsigned half, u32* out) {
  Floats s[3], result;
  const unsigned select = half ? i.op_sel_hi : i.op_sel, negate = half ? i.neg_hi : i.neg;
  (void)w;
  for (unsigned n = 0; n < N; ++n) {
    unpack_f16(source[n], (select >> n & 1u) * 16, s[n]);
    modify_f16(s[n], false, negate >> n & 1u);
  }
  for (unsigned l = 0; l < kLanes; ++l)
    result.lane[l] = Op::f(s[0].lane[l], s[1].lane[l], N > 2 ? s[2].lane[l] : 0.0F);
  if (i.has(Inst::clamp))
    for (float& x : result.lane) x = x > 0.0F ? (x < 1.0F ? x : 1.0F) : 0.0F;
  pack_f16(result, out);
}

template <class Op, unsigned N>
void pk_f16(Wave& w, const Inst& i) {
  Reg t[3], lo, hi;
  const u32* source[3] = {};
  for (unsigned n = 0; n < N; ++n) source[n] = lanes32(w, i.src[n], t[n]);
  half_result<Op, N>(w, i, source, 0, lo.lane);
  half_result<Op, N>(w, i, source, 1, hi.lane);
  write32(w, i.dst, [&](unsigned l) { return lo.lane[l] | hi.lane[l] << 16; });
}
template <class Op, unsigned N>
Handler bind_pk_f16(Inst& i) {
  i.float_class = FloatClass::f64_f16;
  // Inline constants of VOP3P are f16 in the low half.
  return pk_f16<Op, N>;
}
// VOP2: both halves of every source, in order.
void pk_fmac_f16(Wave& w, const Inst& i) {
  Inst plain = i;
  plain.op_sel = 0;
  plain.op_sel_hi = 7;
  plain.neg = plain.neg_hi = 0;
  pk_f16<PkFma, 3>(w, plain);
}
Handler bind_pk_fmac(Inst& i) {
  i.float_class = FloatClass::f64_f16;
  i.src[2].kind = Operand::Kind::vgpr;
  i.src[2].reg = i.dst;
  return pk_fmac_f16;
}

// ---- Two integers
// -------------------------------------------------------------------------------------------

// Op::f(i32 or u32...) on sign- or zero-extended halves gives the exact result; clamp saturates it.
template <class Op, unsigned N, bool Signed>
void pk_int(Wave& w, const Inst& i) {
  Reg t[3];
  const u32* s[3] = {};
  for (unsigned n = 0; n < N; ++n) s[n] = lanes32(w, i.src[n], t[n]);
  const bool clamp = i.has(Inst::clamp);
  const auto half = [&](unsigned l, unsigned select) {
    i64 v[3] = {};
    for (unsigned n = 0; n < N; ++n) {
      const u32 raw = s[n][l] >> (select >> n & 1u) * 16;
      v[n] = Signed ? static_cast<i64>(static_cast<i16>(raw)) : static_cast<i64>(static_cast<u16>(raw));
    }
    i64 r = Op::f(v[0], v[1], v[2]);
    if (clamp) {
      constexpr i64 kLow = Signed ? -32768 : 0, kHigh = Signed ? 32767 : 65535;
      r = r < kLow ? kLow : r > kHigh ? kHigh : r;
    }
    return static_cast<u32>(r) & 0xFFFF;
  };
  write32(w, i.dst, [&](unsigned l) { return half(l, i.op_sel) | half(l, i.op_sel_hi) << 16; });
}
template <class Op, unsigned N, bool Signed>
Handler bind_pk_int(Inst& i) {
  // A floating-point inline constant is an f32 bit pattern to integer operations.
  for (Operand& o : i.src)
    if (o.kind == Operand::Kind::constant && o.reg >= 240 && o.reg <= 248) {
      constexpr float kInline[] = {0.5F, -0.5F, 1.0F, -1.0F, 2.0F, -2.0F, 4.0F, -4.0F, 0.15915494F};
      o.value = as_u32(kInline[o.reg - 240]);
    }
  return pk_int<Op, N, Signed>;
}

#define PK(name, expression)                                                  \
  struct name {                                                               \
    static i64 f(i64 a, i64 b, [[maybe_unused]] i64 c) { return expression; } \
  }
PK(Mad, a* b + c);
PK(MulLo, a* b);
PK(Add, a + b);
PK(Sub, a - b);
PK(Lshl, b << (a & 15));
PK(Shr, b >> (a & 15));
PK(Max, a > b ? a : b);
PK(Min, a < b ? a : b);

// ---- Two f32, or two dwords
// -----------------------------------------------------------------------------------

struct F32Add {
  static float f(float a, float b, float) { return a + b; }
};
struct F32Mul {
  static float f(float a, float b, float) { return a * b; }
};
struct F32Fma {
  static float f(float a, float b, float c) { return fma32(a, b, c); }
};

// The dword of each source for the low (half 0) or high result; one constant serves both.
struct Pairs {
  Temp64 temp[3];
  Lanes64 at[3];
  Pairs(Wave& w, const Inst& i, unsigned n) {
    for (unsigned k = 0; k < n; ++k) {
      at[k] = lanes64(w, i.src[k], temp[k]);
      if (i.src[k].kind == Operand::Kind::constant) at[k].hi = at[k].lo;
    }
  }
  const u32* pick(unsigned n, unsigned select) const { return select >> n & 1u ? at[n].hi : at[n].lo; }
};

template <class Op, unsigned N>
void f32_half(const Inst& i, const Pairs& pairs, unsigned half, u32* out) {
  const unsigned select = half ? i.op_sel_hi : i.op_sel, negate = half ? i.neg_hi : i.neg;
  const u32* a = pairs.pick(0, select);
  const u32* b = pairs.pick(1, select);
  const u32* c = pairs.pick(N > 2 ? 2 : 0, select);
  if (negate == 0 && !i.has(Inst::clamp)) [[likely]] {
#pragma GCC ivdep
    for (unsigned l = 0; l < kLanes; ++l) out[l] = as_u32(Op::f(as_f32(a[l]), as_f32(b[l]), as_f32(c[l])));
    return;
  }
  const u32 na = (negate & 1) << 31, nb = (negate >> 1 & 1) << 31, nc = (negate >> 2 & 1) << 31;
  for (unsigned l = 0; l < kLanes; ++l) {
    float x = Op::f(as_f32(a[l] ^ na), as_f32(b[l] ^ nb), as_f32(c[l] ^ nc));
    if (i.has(Inst::clamp)) x = x > 0.0F ? (x < 1.0F ? x : 1.0F) : 0.0F;
    out[l] = as_u32(x);
  }
}

void store_pair(Wave& w, unsigned dst, const Reg& lo, const Reg& hi) {
  write32(w, dst, [&](unsigned l) { return lo.lane[l]; });
  write32(w, dst + 1, [&](unsigned l) { return hi.lane[l]; });
}

template <class Op, unsigned N>
void pk_f32(Wave& w, const Inst& i) {
  const Pairs pairs(w, i, N);
  u32* first = w.v[i.dst].lane;
  bool overlap = false;  // the high half reads what the low half writes
  for (unsigned n = 0; n < N; ++n) overlap |= pairs.pick(n, i.op_sel_hi) == first;
  if (w.full() && !overlap) [[likely]] {
    f32_half<Op, N>(i, pairs, 0, first);
    f32_half<Op, N>(i, pairs, 1, w.v[i.dst + 1].lane);
    return;
  }
  Reg lo, hi;
  f32_half<Op, N>(i, pairs, 0, lo.lane);
  f32_half<Op, N>(i, pairs, 1, hi.lane);
  store_pair(w, i.dst, lo, hi);
}
template <class Op, unsigned N>
Handler bind_pk_f32(Inst& i) {
  i.float_class = FloatClass::f32;
  return pk_f32<Op, N>;
}

// The low result is src0's half, the high one src1's; OP_SEL has a bit for each.
void pk_mov_b32(Wave& w, const Inst& i) {
  const Pairs pairs(w, i, 2);
  const Reg lo = *reinterpret_cast<const Reg*>(pairs.pick(0, i.op_sel));
  const Reg hi = *reinterpret_cast<const Reg*>(pairs.pick(1, i.op_sel));
  store_pair(w, i.dst, lo, hi);
}

}  // namespace

KERNCAP_SIM_FAMILY(valu_packed, {"v_pk_add_f16", nullptr, bind_pk_f16<PkAdd, 2>},
                   {"v_pk_mul_f16", nullptr, bind_pk_f16<PkMul, 2>},
                   {"v_pk_fma_f16", nullptr, bind_pk_f16<PkFma, 3>},
                   {"v_pk_min_f16", nullptr, bind_pk_f16<PkMin, 2>},
                   {"v_pk_max_f16", nullptr, bind_pk_f16<PkMax, 2>}, {"v_pk_fmac_f16", nullptr, bind_pk_fmac},
                   {"v_pk_mad_i16", nullptr, bind_pk_int<Mad, 3, true>},
                   {"v_pk_mad_u16", nullptr, bind_pk_int<Mad, 3, false>},
                   {"v_pk_mul_lo_u16", nullptr, bind_pk_int<MulLo, 2, false>},
                   {"v_pk_add_i16", nullptr, bind_pk_int<Add, 2, true>},
                   {"v_pk_add_u16", nullptr, bind_pk_int<Add, 2, false>},
                   {"v_pk_sub_i16", nullptr, bind_pk_int<Sub, 2, true>},
                   {"v_pk_sub_u16", nullptr, bind_pk_int<Sub, 2, false>},
                   {"v_pk_lshlrev_b16", nullptr, bind_pk_int<Lshl, 2, false>},
                   {"v_pk_lshrrev_b16", nullptr, bind_pk_int<Shr, 2, false>},
                   {"v_pk_ashrrev_i16", nullptr, bind_pk_int<Shr, 2, true>},
                   {"v_pk_max_i16", nullptr, bind_pk_int<Max, 2, true>},
                   {"v_pk_max_u16", nullptr, bind_pk_int<Max, 2, false>},
                   {"v_pk_min_i16", nullptr, bind_pk_int<Min, 2, true>},
                   {"v_pk_min_u16", nullptr, bind_pk_int<Min, 2, false>},
                   {"v_pk_fma_f32", nullptr, bind_pk_f32<F32Fma, 3>},
                   {"v_pk_mul_f32", nullptr, bind_pk_f32<F32Mul, 2>},
                   {"v_pk_add_f32", nullptr, bind_pk_f32<F32Add, 2>}, {"v_pk_mov_b32", pk_mov_b32})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
