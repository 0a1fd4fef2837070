// f64 arithmetic and conversions of the vector ALU.
#include "sim/isa/float_ops.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

#define OP1(type, expr)                                 \
  struct type {                                         \
    static inline double f(double a) { return (expr); } \
  }
#define OP2(type, expr)                                           \
  struct type {                                                   \
    static inline double f(double a, double b) { return (expr); } \
  }
#define OP3(type, expr)                                                     \
  struct type {                                                             \
    static inline double f(double a, double b, double c) { return (expr); } \
  }

OP2(Add, a + b);
OP2(Mul, a* b);
OP2(Min, min64(a, b));
OP2(Max, max64(a, b));
OP3(Fma, __builtin_fma(a, b, c));
OP1(Trunc, __builtin_trunc(a));
OP1(Ceil, __builtin_ceil(a));
OP1(Floor, __builtin_floor(a));
OP1(Rndne, __builtin_rint(a));
OP1(Fract, a - a != 0.0 ? a - a : __builtin_fmin(a - __builtin_floor(a), 0x1.fffffffffffffp-1));
struct FrexpMantissa {
  static double f(double a) {
    int e = 0;
    return a - a != 0.0 ? a : std::frexp(a, &e);
  }
};
// Seeds for Newton iterations on the device; here the correctly rounded value, which is within their
// tolerance.
OP1(Rcp, 1.0 / a);
OP1(Rsq, 1.0 / __builtin_sqrt(a));
OP1(Sqrt, __builtin_sqrt(a));

// Results of another type than the sources.
template <class F>
void from_f64(Wave& w, const Inst& i, F f) {
  Temp64 t;
  const Lanes64 a = lanes64(w, i.src[0], t);
  alignas(64) u32 result[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) result[l] = f(as_f64(modify64(i, 0, a[l])));
  write32(w, i.dst, [&](unsigned l) { return result[l]; });
}
template <class F>
void to_f64(Wave& w, const Inst& i, F f) {
  Reg t;
  const u32* a = lanes32(w, i.src[0], t);
  write64(w, i.dst, [=, &i](unsigned l) { return as_u64(output64(i, f(a[l]))); });
}

u32 frexp_exponent(double a) {
  int e = 0;
  if (a - a != 0.0 || a == 0.0) return 0;
  std::frexp(a, &e);
  return static_cast<u32>(e);
}

void v_cvt_f32_f64(Wave& w, const Inst& i) {
  from_f64(w, i, [&i](double a) { return as_u32(output32(i, static_cast<float>(a))); });
}
void v_cvt_f64_f32(Wave& w, const Inst& i) {
  const SignBits s = sign_bits(i, 0);
  to_f64(w, i, [=](u32 a) { return static_cast<double>(as_f32(s(a))); });
}

void v_ldexp_f64(Wave& w, const Inst& i) {
  Temp64 t0;
  Reg t1;
  const Lanes64 a = lanes64(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  write64(w, i.dst, [&](unsigned l) {
    const i32 n = static_cast<i32>(b[l]);
    const double x = as_f64(modify64(i, 0, a[l]));
    return as_u64(output64(i, std::ldexp(x, n > 5000 ? 5000 : n < -5000 ? -5000 : n)));
  });
}

// A 53-bit segment of 2/pi, for the argument reduction of sin and cos (ISA document, V_TRIG_PREOP_F64).
constexpr u32 kTwoOverPi[] = {
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561,
    0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484,
    0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F,
    0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B,
    0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB, 0xF0CFBC20, 0x9AF4361D,
};
double trig_preop(double a, u32 segment) {
  const unsigned exponent = static_cast<unsigned>(as_u64(a) >> 52 & 0x7FFu);
  unsigned shift = (segment & 31u) * 53;
  if (exponent > 1077) shift += exponent - 1077;
  const unsigned word = shift >> 5, bit = shift & 31u;
  if (word + 2 >= std::size(kTwoOverPi)) return 0.0;
  u64 top = static_cast<u64>(kTwoOverPi[word]) << 32 | kTwoOverPi[word + 1];
  if (bit != 0) top = top << bit | kTwoOverPi[word + 2] >> (32 - bit);
  int scale = -53 - static_cast<int>(shift);
  if (exponent >= 1968) scale += 128;
  return std::ldexp(static_cast<double>(top >> 11), scale);
}
void v_trig_preop_f64(Wave& w, const Inst& i) {
  Temp64 t0;
  Reg t1;
  const Lanes64 a = lanes64(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  write64(w, i.dst,
          [&](unsigned l) { return as_u64(output64(i, trig_preop(as_f64(modify64(i, 0, a[l])), b[l]))); });
}

}  // namespace

#define B1(name, op) {name, nullptr, bind_f64<op, 1>}
#define B2(name, op) {name, nullptr, bind_f64<op, 2>}
#define B3(name, op) {name, nullptr, bind_f64<op, 3>}
#define FROM(name, expr) \
  {name,                 \
   [](Wave& w, const Inst& i) { from_f64(w, i, [](double a) -> u32 { return static_cast<u32>(expr); }); }}
#define TO(name, expr) \
  {name, [](Wave& w, const Inst& i) { to_f64(w, i, [](u32 a) { return static_cast<double>(expr); }); }}

// The conversion to f32 rounds as the f32 field of MODE says.
static Handler bind_f32_result(Inst& i) {
  i.float_class = FloatClass::f32;
  return v_cvt_f32_f64;
}

KERNCAP_SIM_FAMILY(valu_f64, B2("v_add_f64", Add), B2("v_mul_f64", Mul), B2("v_min_f64", Min),
                   B2("v_max_f64", Max), B3("v_fma_f64", Fma), B3("v_fmac_f64", Fma),
                   B1("v_trunc_f64", Trunc), B1("v_ceil_f64", Ceil), B1("v_floor_f64", Floor),
                   B1("v_rndne_f64", Rndne), B1("v_fract_f64", Fract), B1("v_frexp_mant_f64", FrexpMantissa),
                   B1("v_rcp_f64", Rcp), B1("v_rsq_f64", Rsq), B1("v_sqrt_f64", Sqrt),
                   FROM("v_frexp_exp_i32_f64", frexp_exponent(a)), FROM("v_cvt_i32_f64", to_i32(a)),
                   FROM("v_cvt_u32_f64", to_u32(a)), TO("v_cvt_f64_i32", static_cast<i32>(a)),
                   TO("v_cvt_f64_u32", a), {"v_cvt_f32_f64", nullptr, bind_f32_result},
                   {"v_cvt_f64_f32", v_cvt_f64_f32}, {"v_ldexp_f64", v_ldexp_f64},
                   {"v_trig_preop_f64", v_trig_preop_f64})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
