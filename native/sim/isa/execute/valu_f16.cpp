// f16 arithmetic of VOP1, VOP2 and VOP3. Most instructions clear the upper half of their destination; those
// that came with gfx9 (mad, fma, min3 ... with op_sel) keep it, or write it and keep the lower one.
#include "sim/isa/float_ops.h"
#include "sim/isa/half.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

// Stores 64 low halves for the lanes in EXEC. `keep`: the other half stays as it is.
void store16(Wave& w, const Inst& i, const u32* value, bool keep) {
  if (i.op_sel & 8) {
    const u32* old = w.v[i.dst].lane;
    write32(w, i.dst, [=](unsigned l) { return (old[l] & 0xFFFF) | value[l] << 16; });
  } else if (keep) {
    const u32* old = w.v[i.dst].lane;
    write32(w, i.dst, [=](unsigned l) { return (old[l] & 0xFFFF0000) | value[l]; });
  } else {
    write32(w, i.dst, [=](unsigned l) { return value[l]; });
  }
}

void source16(Wave& w, const Inst& i, unsigned n, Floats& out) {
  Reg t;
  unpack_f16(lanes32(w, i.src[n], t), (i.op_sel >> n & 1u) * 16, out);
  modify_f16(out, i.abs >> n & 1u, i.neg >> n & 1u);
}

// Op::f(float...) -> float that only needs rounding to f16.
template <class Op, unsigned N, bool Keep>
void f16_op(Wave& w, const Inst& i) {
  Floats a, b, c, result;
  source16(w, i, 0, a);
  if constexpr (N > 1) source16(w, i, 1, b);
  if constexpr (N > 2) source16(w, i, 2, c);
  for (unsigned l = 0; l < kLanes; ++l) {
    if constexpr (N == 1) result.lane[l] = Op::f(a.lane[l]);
    if constexpr (N == 2) result.lane[l] = Op::f(a.lane[l], b.lane[l]);
    if constexpr (N == 3) result.lane[l] = Op::f(a.lane[l], b.lane[l], c.lane[l]);
  }
  if (i.omod != 0 || i.has(Inst::clamp))
    for (float& x : result.lane) x = output32(i, x);
  Reg packed;
  pack_f16(result, packed.lane);
  store16(w, i, packed.lane, Keep);
}

template <class Op, unsigned N, bool Keep = false>
Handler bind_f16(Inst& i) {
  i.float_class = FloatClass::f64_f16;
  return f16_op<Op, N, Keep>;
}

#define OP1(name, expression)                      \
  struct name {                                    \
    static float f(float a) { return expression; } \
  }
#define OP2(name, expression)                               \
  struct name {                                             \
    static float f(float a, float b) { return expression; } \
  }
#define OP3(name, expression)                                        \
  struct name {                                                      \
    static float f(float a, float b, float c) { return expression; } \
  }

OP2(Add, a + b);
OP2(Sub, a - b);
OP2(SubRev, b - a);
OP2(Mul, a* b);
OP2(Min, min32(a, b));
OP2(Max, max32(a, b));
OP3(Fma, fma_f16(a, b, c));
// Unfused: the product is rounded to f16 first.
OP3(Mad, f16_to_f32(f32_to_f16(a* b)) + c);
OP3(Min3, min32(min32(a, b), c));
OP3(Max3, max32(max32(a, b), c));
OP3(Med3, med32(a, b, c));
OP1(Rcp, 1.0F / a);
OP1(Sqrt, std::sqrt(a));
OP1(Rsq, static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))));
OP1(Log, static_cast<float>(std::log2(static_cast<double>(a))));
OP1(Exp, static_cast<float>(std::exp2(static_cast<double>(a))));
OP1(Floor, std::floor(a));
OP1(Ceil, std::ceil(a));
OP1(Trunc, std::trunc(a));
OP1(Rndne, std::nearbyint(a));

// The largest f16 below 1 bounds the result, for arguments just below an integer.
struct Fract {
  static float f(float a) {
    const float r = a - std::floor(a);
    return is_nan(r) ? r : min32(r, 0x1.FFCp-1F);
  }
};
// The argument is in turns.
struct Sin {
  static float f(float a) {
    return std::isinf(a) ? as_f32(0x7FC00000)
                         : static_cast<float>(std::sin(6.283185307179586 * std::fmod(a, 1.0F)));
  }
};
struct Cos {
  static float f(float a) {
    return std::isinf(a) ? as_f32(0x7FC00000)
                         : static_cast<float>(std::cos(6.283185307179586 * std::fmod(a, 1.0F)));
  }
};
struct FrexpMant {
  static float f(float a) {
    int exponent = 0;
    return std::isfinite(a) ? std::frexp(a, &exponent) : a;
  }
};
// Numerator in c, denominator in b, the quotient so far in a: returns what the division instruction sequence
// must end with (zeros, infinities and NaN included).
struct DivFixup {
  static float f(float a, float b, float c) {
    if (is_nan(c)) return c;
    if (is_nan(b)) return b;
    const bool negative = (as_u32(b) ^ as_u32(c)) >> 31 != 0;
    const float infinite = as_f32(negative ? 0xFF800000 : 0x7F800000), zero = negative ? -0.0F : 0.0F;
    if ((b == 0 && c == 0) || (std::isinf(b) && std::isinf(c))) return as_f32(0xFFC00000);
    if (b == 0 || std::isinf(c)) return infinite;
    if (std::isinf(b) || c == 0) return zero;
    return negative ? -std::fabs(a) : std::fabs(a);
  }
};

// Conversions and others whose source or result is not f16.
template <class F>
void from_f16(Wave& w, const Inst& i, F f) {
  Floats a;
  source16(w, i, 0, a);
  write32(w, i.dst, [&](unsigned l) { return f(a.lane[l]); });
}
template <class F>
void to_f16(Wave& w, const Inst& i, F f) {
  Reg t, packed;
  const u32* a = lanes32(w, i.src[0], t);
  Floats result;
  for (unsigned l = 0; l < kLanes; ++l) result.lane[l] = output32(i, f(a[l]));
  pack_f16(result, packed.lane);
  store16(w, i, packed.lane, false);
}

u32 to_integer(float x, float low, float high) {
  if (is_nan(x)) return 0;
  return static_cast<u32>(static_cast<i32>(x < low ? low : x > high ? high : x)) & 0xFFFF;
}

void cvt_f16_f32(Wave& w, const Inst& i) {
  const SignBits s = sign_bits(i, 0);
  to_f16(w, i, [s](u32 a) { return as_f32(s(a)); });
}
void cvt_f32_f16(Wave& w, const Inst& i) {
  from_f16(w, i, [&i](float a) { return as_u32(output32(i, a)); });
}
void cvt_f16_u16(Wave& w, const Inst& i) {
  to_f16(w, i, [](u32 a) { return static_cast<float>(static_cast<u16>(a)); });
}
void cvt_f16_i16(Wave& w, const Inst& i) {
  to_f16(w, i, [](u32 a) { return static_cast<float>(static_cast<i16>(a)); });
}
void cvt_u16_f16(Wave& w, const Inst& i) {
  from_f16(w, i, [](float a) { return to_integer(a, 0.0F, 65535.0F); });
}
void cvt_i16_f16(Wave& w, const Inst& i) {
  from_f16(w, i, [](float a) { return to_integer(a, -32768.0F, 32767.0F); });
}
void cvt_norm_i16_f16(Wave& w, const Inst& i) {
  from_f16(w, i, [](float a) { return to_integer(std::nearbyint(a * 32767.0F), -32767.0F, 32767.0F); });
}
void cvt_norm_u16_f16(Wave& w, const Inst& i) {
  from_f16(w, i, [](float a) { return to_integer(std::nearbyint(a * 65535.0F), 0.0F, 65535.0F); });
}
void frexp_exp_i16_f16(Wave& w, const Inst& i) {
  from_f16(w, i, [](float a) {
    int exponent = 0;
    if (std::isfinite(a) && a != 0) std::frexp(a, &exponent);
    return static_cast<u32>(exponent) & 0xFFFF;
  });
}
void ldexp_f16(Wave& w, const Inst& i) {
  Floats a, result;
  source16(w, i, 0, a);
  Reg t, packed;
  const u32* b = lanes32(w, i.src[1], t);
  for (unsigned l = 0; l < kLanes; ++l) {
    // Beyond this the result is 0 or infinite, and f32 holds anything closer.
    const int by = std::min(std::max(static_cast<int>(static_cast<i16>(b[l])), -80), 80);
    result.lane[l] = output32(i, std::ldexp(a.lane[l], by));
  }
  pack_f16(result, packed.lane);
  store16(w, i, packed.lane, false);
}
void pack_b32_f16(Wave& w, const Inst& i) {
  Floats a, b;
  source16(w, i, 0, a);
  source16(w, i, 1, b);
  Reg lo, hi;
  pack_f16(a, lo.lane);
  pack_f16(b, hi.lane);
  write32(w, i.dst, [&](unsigned l) { return lo.lane[l] | hi.lane[l] << 16; });
}

template <Handler F>
Handler bind_plain(Inst& i) {
  i.float_class = FloatClass::f64_f16;
  return F;
}

}  // namespace

KERNCAP_SIM_FAMILY(
    valu_f16, {"v_add_f16", nullptr, bind_f16<Add, 2>}, {"v_sub_f16", nullptr, bind_f16<Sub, 2>},
    {"v_subrev_f16", nullptr, bind_f16<SubRev, 2>}, {"v_mul_f16", nullptr, bind_f16<Mul, 2>},
    {"v_min_f16", nullptr, bind_f16<Min, 2>}, {"v_max_f16", nullptr, bind_f16<Max, 2>},
    {"v_mac_f16", nullptr, bind_f16<Mad, 3, true>}, {"v_mad_f16", nullptr, bind_f16<Mad, 3, true>},
    {"v_mad_legacy_f16", nullptr, bind_f16<Mad, 3>}, {"v_fma_f16", nullptr, bind_f16<Fma, 3, true>},
    {"v_fma_legacy_f16", nullptr, bind_f16<Fma, 3>}, {"v_min3_f16", nullptr, bind_f16<Min3, 3, true>},
    {"v_max3_f16", nullptr, bind_f16<Max3, 3, true>}, {"v_med3_f16", nullptr, bind_f16<Med3, 3, true>},
    {"v_div_fixup_f16", nullptr, bind_f16<DivFixup, 3, true>},
    {"v_div_fixup_legacy_f16", nullptr, bind_f16<DivFixup, 3>}, {"v_rcp_f16", nullptr, bind_f16<Rcp, 1>},
    {"v_sqrt_f16", nullptr, bind_f16<Sqrt, 1>}, {"v_rsq_f16", nullptr, bind_f16<Rsq, 1>},
    {"v_log_f16", nullptr, bind_f16<Log, 1>}, {"v_exp_f16", nullptr, bind_f16<Exp, 1>},
    {"v_floor_f16", nullptr, bind_f16<Floor, 1>}, {"v_ceil_f16", nullptr, bind_f16<Ceil, 1>},
    {"v_trunc_f16", nullptr, bind_f16<Trunc, 1>}, {"v_rndne_f16", nullptr, bind_f16<Rndne, 1>},
    {"v_fract_f16", nullptr, bind_f16<Fract, 1>}, {"v_sin_f16", nullptr, bind_f16<Sin, 1>},
    {"v_cos_f16", nullptr, bind_f16<Cos, 1>}, {"v_frexp_mant_f16", nullptr, bind_f16<FrexpMant, 1>},
    {"v_cvt_f16_f32", nullptr, bind_plain<cvt_f16_f32>}, {"v_cvt_f32_f16", nullptr, bind_plain<cvt_f32_f16>},
    {"v_cvt_f16_u16", nullptr, bind_plain<cvt_f16_u16>}, {"v_cvt_f16_i16", nullptr, bind_plain<cvt_f16_i16>},
    {"v_cvt_u16_f16", nullptr, bind_plain<cvt_u16_f16>}, {"v_cvt_i16_f16", nullptr, bind_plain<cvt_i16_f16>},
    {"v_cvt_norm_i16_f16", nullptr, bind_plain<cvt_norm_i16_f16>},
    {"v_cvt_norm_u16_f16", nullptr, bind_plain<cvt_norm_u16_f16>},
    {"v_frexp_exp_i16_f16", nullptr, bind_plain<frexp_exp_i16_f16>},
    {"v_ldexp_f16", nullptr, bind_plain<ldexp_f16>}, {"v_pack_b32_f16", nullptr, bind_plain<pack_b32_f16>})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
