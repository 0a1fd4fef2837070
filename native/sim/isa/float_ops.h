// Scalar building blocks of the floating-point handlers, per lane and vectorisable.
#pragma once

#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {

// a * b + c, rounded once. Without FMA instructions libm's software fma is exact but slow, so it is done in
// double with the sum rounded to odd: 53 bits are enough for that to round correctly to 24.
static inline float fma32(float a, float b, float c) {
#if defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  const double p = static_cast<double>(a) * static_cast<double>(b);  // exact
  const double s = p + static_cast<double>(c);
  // The error of the sum (Knuth's two-sum); where it is not 0 and the sum's last bit is even, go to odd.
  const double bv = s - p;
  const double error = (p - (s - bv)) + (static_cast<double>(c) - bv);
  u64 bits = as_u64(s);
  if (error != 0.0 && (bits & 1u) == 0 && error == error && s - s == 0.0) {
    const bool away = (error > 0.0) == (s > 0.0);
    bits = away ? bits + 1 : bits - 1;
  }
  return static_cast<float>(as_f64(bits));
#endif
}

// IEEE-mode minimum and maximum: a NaN gives the other operand, a signalling one a quiet NaN, and -0 < +0.
static inline float quiet(float x) { return as_f32(as_u32(x) | 0x00400000u); }
static inline bool is_nan(float x) { return x != x; }
static inline bool is_signalling(float x) {
  return (as_u32(x) & 0x7FFFFFFFu) > 0x7F800000u && (as_u32(x) & 0x00400000u) == 0;
}
static inline float min32(float a, float b) {
  float r = a < b ? a : b;
  r = a == b ? as_f32(as_u32(a) | as_u32(b)) : r;
  r = is_nan(b) ? a : r;
  r = is_nan(a) ? b : r;
  return is_nan(a) && (is_signalling(a) || is_nan(b)) ? quiet(a) : is_signalling(b) ? quiet(b) : r;
}
static inline float max32(float a, float b) {
  float r = a > b ? a : b;
  r = a == b ? as_f32(as_u32(a) & as_u32(b)) : r;
  r = is_nan(b) ? a : r;
  r = is_nan(a) ? b : r;
  return is_nan(a) && (is_signalling(a) || is_nan(b)) ? quiet(a) : is_signalling(b) ? quiet(b) : r;
}
// v_med3: with a NaN among the three, the minimum of the other two (ISA document, V_MED3_F32).
static inline float med32(float a, float b, float c) {
  if (is_nan(a) || is_nan(b) || is_nan(c)) return min32(min32(a, b), c);
  return max32(min32(a, b), min32(max32(a, b), c));
}

static inline bool is_signalling(double x) {
  return (as_u64(x) & 0x7FFFFFFFFFFFFFFFull) > 0x7FF0000000000000ull &&
         (as_u64(x) & 0x0008000000000000ull) == 0;
}
static inline double quiet(double x) { return as_f64(as_u64(x) | 0x0008000000000000ull); }
static inline double min64(double a, double b) {
  if (a != a) return is_signalling(a) || b != b ? quiet(a) : b;
  if (b != b) return is_signalling(b) ? quiet(b) : a;
  if (a == b) return as_f64(as_u64(a) | as_u64(b));
  return a < b ? a : b;
}
static inline double max64(double a, double b) {
  if (a != a) return is_signalling(a) || b != b ? quiet(a) : b;
  if (b != b) return is_signalling(b) ? quiet(b) : a;
  if (a == b) return as_f64(as_u64(a) & as_u64(b));
  return a > b ? a : b;
}

// Float to integer conversions saturate and take NaN to 0.
static inline i32 to_i32(double x) {
  if (x != x) return 0;
  return x >= 2147483647.0 ? 0x7FFFFFFF : x <= -2147483648.0 ? -0x7FFFFFFF - 1 : static_cast<i32>(x);
}
static inline u32 to_u32(double x) {
  if (x != x || x <= 0.0) return 0;
  return x >= 4294967295.0 ? 0xFFFFFFFFu : static_cast<u32>(static_cast<i64>(x));
}

// The classes of v_cmp_class: signalling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, +denormal,
// +normal, +inf.
static inline u32 class_of(bool negative, u64 exponent, u64 max_exponent, u64 mantissa, u64 quiet_bit) {
  if (exponent == max_exponent && mantissa != 0) return (mantissa & quiet_bit) != 0 ? 1u << 1 : 1u << 0;
  if (exponent == max_exponent) return negative ? 1u << 2 : 1u << 9;
  if (exponent != 0) return negative ? 1u << 3 : 1u << 8;
  if (mantissa != 0) return negative ? 1u << 4 : 1u << 7;
  return negative ? 1u << 5 : 1u << 6;
}
static inline u32 class32(u32 x) {
  return class_of(x >> 31 != 0, x >> 23 & 0xFFu, 0xFF, x & 0x7FFFFFu, 0x400000);
}
static inline u32 class64(u64 x) {
  return class_of(x >> 63 != 0, x >> 52 & 0x7FFu, 0x7FF, x & 0xFFFFFFFFFFFFFull, 0x8000000000000ull);
}

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
