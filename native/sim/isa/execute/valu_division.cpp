// v_div_scale, v_div_fmas and v_div_fixup: the pieces of a correctly rounded division (ISA document,
// V_DIV_*).
#include "sim/isa/float_ops.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

// What the two formats differ in.
struct F32 {
  using Real = float;
  using Bits = u32;
  static constexpr int kExponentMax = 0xFF, kNearMax = 96, kScale = 64, kSmall = 23, kBias = 127;
  static constexpr float kLeastNormal = 0x1p-126F;
  static int exponent(float x) { return static_cast<int>(as_u32(x) >> 23 & 0xFFu); }
  static bool negative(float x) { return as_u32(x) >> 31 != 0; }
  static float nan() { return as_f32(0xFFC00000u); }
};
struct F64 {
  using Real = double;
  using Bits = u64;
  static constexpr int kExponentMax = 0x7FF, kNearMax = 768, kScale = 128, kSmall = 53, kBias = 1023;
  static constexpr double kLeastNormal = 0x1p-1022;
  static int exponent(double x) { return static_cast<int>(as_u64(x) >> 52 & 0x7FFu); }
  static bool negative(double x) { return as_u64(x) >> 63 != 0; }
  static double nan() { return as_f64(0xFFF8000000000000ull); }
};

template <class T>
bool same(typename T::Real a, typename T::Real b) {
  return std::bit_cast<typename T::Bits>(a) == std::bit_cast<typename T::Bits>(b);
}
// Whether a / b is denormal, in exact terms: the quotient rounded by the host is.
template <class T>
bool quotient_denormal(typename T::Real a, typename T::Real b) {
  const typename T::Real q = a / b;
  return q != 0 && std::fabs(q) < T::kLeastNormal;
}

template <class T>
typename T::Real scale(typename T::Real s0, typename T::Real s1, typename T::Real s2, bool* vcc) {
  *vcc = false;
  if (s2 == 0 || s1 == 0) return T::nan();
  const auto up = [](typename T::Real x) { return std::ldexp(x, T::kScale); };
  if (T::exponent(s2) - T::exponent(s1) >= T::kNearMax) {
    *vcc = true;
    return same<T>(s0, s1) ? up(s0) : s0;
  }
  if (T::exponent(s1) == 0) return up(s0);
  const bool reciprocal = quotient_denormal<T>(1, s1), quotient = quotient_denormal<T>(s2, s1);
  if (reciprocal && quotient) {
    *vcc = true;
    return same<T>(s0, s1) ? up(s0) : s0;
  }
  if (reciprocal) return std::ldexp(s0, -T::kScale);
  if (quotient) {
    *vcc = true;
    return same<T>(s0, s2) ? up(s0) : s0;
  }
  return T::exponent(s2) <= T::kSmall ? up(s0) : s0;
}

// s0: the approximate quotient, s1: denominator, s2: numerator. The document's steps do not round quotients
// that are denormal, or that overflow, correctly; the device does, so these come from the host's own
// division.
template <class T>
typename T::Real fixup(typename T::Real s0, typename T::Real s1, typename T::Real s2) {
  using Real = typename T::Real;
  const bool negative = T::negative(s1) != T::negative(s2);
  const auto sign = [negative](Real magnitude) { return negative ? -magnitude : magnitude; };
  if (s2 != s2) return quiet(s2);
  if (s1 != s1) return quiet(s1);
  const Real infinity = static_cast<Real>(__builtin_inf());
  const bool inf1 = std::fabs(s1) == infinity, inf2 = std::fabs(s2) == infinity;
  if ((s1 == 0 && s2 == 0) || (inf1 && inf2)) return T::nan();
  if (s1 == 0 || inf2) return sign(infinity);
  if (inf1 || s2 == 0) return sign(0);
  const Real quotient = s2 / s1;
  if (std::fabs(quotient) < T::kLeastNormal || std::fabs(quotient) == infinity) return quotient;
  return sign(std::fabs(s0));
}

template <class T>
typename T::Real unscale(typename T::Real product, typename T::Real s2) {
  return std::ldexp(product, T::exponent(s2) > T::kBias ? T::kScale : -T::kScale);
}

void v_div_scale_f32(Wave& w, const Inst& i) {
  Reg t0, t1, t2;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  const u32* c = lanes32(w, i.src[2], t2);
  const SignBits s0 = sign_bits(i, 0), s1 = sign_bits(i, 1), s2 = sign_bits(i, 2);
  u32 result[kLanes];
  bool scaled[kLanes];
  for (unsigned l = 0; l < kLanes; ++l)
    result[l] = as_u32(scale<F32>(as_f32(s0(a[l])), as_f32(s1(b[l])), as_f32(s2(c[l])), &scaled[l]));
  w.set_s64(i.sdst, ballot(w, [&](unsigned l) { return scaled[l]; }));
  write32(w, i.dst, [&](unsigned l) { return result[l]; });
}
void v_div_scale_f64(Wave& w, const Inst& i) {
  Temp64 t0, t1, t2;
  const Lanes64 a = lanes64(w, i.src[0], t0), b = lanes64(w, i.src[1], t1), c = lanes64(w, i.src[2], t2);
  u64 result[kLanes];
  bool scaled[kLanes];
  for (unsigned l = 0; l < kLanes; ++l)
    result[l] = as_u64(scale<F64>(as_f64(modify64(i, 0, a[l])), as_f64(modify64(i, 1, b[l])),
                                  as_f64(modify64(i, 2, c[l])), &scaled[l]));
  w.set_s64(i.sdst, ballot(w, [&](unsigned l) { return scaled[l]; }));
  write64(w, i.dst, [&](unsigned l) { return result[l]; });
}

// Lanes whose VCC bit is set are scaled back.
void v_div_fmas_f32(Wave& w, const Inst& i) {
  const u64 vcc = w.vcc();
  Reg t0, t1, t2;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  const u32* c = lanes32(w, i.src[2], t2);
  const SignBits s0 = sign_bits(i, 0), s1 = sign_bits(i, 1), s2 = sign_bits(i, 2);
  write32(w, i.dst, [=, &i](unsigned l) {
    const float addend = as_f32(s2(c[l]));
    const float sum = fma32(as_f32(s0(a[l])), as_f32(s1(b[l])), addend);
    return as_u32(output32(i, (vcc >> l & 1u) != 0 ? unscale<F32>(sum, addend) : sum));
  });
}
void v_div_fmas_f64(Wave& w, const Inst& i) {
  const u64 vcc = w.vcc();
  Temp64 t0, t1, t2;
  const Lanes64 a = lanes64(w, i.src[0], t0), b = lanes64(w, i.src[1], t1), c = lanes64(w, i.src[2], t2);
  write64(w, i.dst, [&](unsigned l) {
    const double addend = as_f64(modify64(i, 2, c[l]));
    const double sum = __builtin_fma(as_f64(modify64(i, 0, a[l])), as_f64(modify64(i, 1, b[l])), addend);
    return as_u64(output64(i, (vcc >> l & 1u) != 0 ? unscale<F64>(sum, addend) : sum));
  });
}

struct Fixup32 {
  static float f(float a, float b, float c) { return fixup<F32>(a, b, c); }
};
struct Fixup64 {
  static double f(double a, double b, double c) { return fixup<F64>(a, b, c); }
};

template <Handler H, FloatClass C>
Handler with_class(Inst& i) {
  i.float_class = C;
  return H;
}

}  // namespace

KERNCAP_SIM_FAMILY(valu_division, {"v_div_scale_f32", nullptr, with_class<v_div_scale_f32, FloatClass::f32>},
                   {"v_div_scale_f64", nullptr, with_class<v_div_scale_f64, FloatClass::f64_f16>},
                   {"v_div_fmas_f32", nullptr, with_class<v_div_fmas_f32, FloatClass::f32>},
                   {"v_div_fmas_f64", nullptr, with_class<v_div_fmas_f64, FloatClass::f64_f16>},
                   {"v_div_fixup_f32", nullptr, bind_f32<Fixup32, 3>},
                   {"v_div_fixup_f64", nullptr, bind_f64<Fixup64, 3>})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
