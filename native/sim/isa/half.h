// f16 in the registers of a wave: unpacked to f32 for computing and rounded back.
//
// Computing an add, subtract, multiply, divide or square root of f16 in f32 and rounding the result is the
// correctly rounded f16 result, since f32 has more than twice the bits and two. A fused multiply-add is not,
// so it goes through f64 (where the product is exact) and a rounding to odd.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {

struct alignas(64) Floats {
  float lane[kLanes];
};

static inline float f16_to_f32(u32 h) {
#ifdef __F16C__
  return _cvtsh_ss(static_cast<u16>(h));
#else
  const u32 sign = (h & 0x8000) << 16, rest = h & 0x7FFF;
  if (rest > 0x7C00) return as_f32(sign | 0x7FC00000 | (rest & 0x3FF) << 13);
  if (rest == 0x7C00) return as_f32(sign | 0x7F800000);
  // 2^112 moves f16's exponent bias to f32's; denormals come out exact as well.
  return as_f32(as_u32(as_f32(rest << 13) * 0x1p112F) | sign);
#endif
}

// Rounds as the current floating-point mode says; zero above bit 15.
static inline u32 f32_to_f16(float x) {
#ifdef __F16C__
  return _cvtss_sh(x, _MM_FROUND_CUR_DIRECTION);
#else
  const u32 bits = as_u32(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7FFFFFFF;
  if (rest > 0x7F800000) return sign | 0x7E00 | (rest >> 13 & 0x3FF);
  if (rest == 0x7F800000) return sign | 0x7C00;
  // Adding 1.5 * 2^(e+13) leaves the 11 bits that f16 keeps at exponent e, rounded by the processor.
  const u32 exponent = rest >> 23 < 113 ? 113 : rest >> 23;
  if (exponent >= 127 + 16) {
    const unsigned round = _mm_getcsr() >> 13 & 3;  // 0 nearest, 1 down, 2 up, 3 to zero
    const bool away = round == 0 || (round == 1 && sign != 0) || (round == 2 && sign == 0);
    return sign | (away ? 0x7C00 : 0x7BFF);
  }
  // It has the sign of x, so that directed rounding goes the same way.
  const float magic = as_f32(sign << 16 | (exponent + 13) << 23 | 0x400000);
  volatile float moved = x + magic;
  const float rounded = moved - magic;
  const u32 r = as_u32(rounded) & 0x7FFFFFFF;
  if (r >= as_u32(65536.0F)) {
    const unsigned round = _mm_getcsr() >> 13 & 3;
    const bool away = round == 0 || (round == 1 && sign != 0) || (round == 2 && sign == 0);
    return sign | (away ? 0x7C00 : 0x7BFF);
  }
  if (r < as_u32(0x1p-14F)) return sign | static_cast<u32>(as_f32(r) * 0x1p24F);
  return sign | ((r - (112u << 23)) >> 13);
#endif
}

// The low (shift 0) or high (shift 16) halves of 64 lanes.
static inline void unpack_f16(const u32* source, unsigned shift, Floats& out) {
#ifdef __F16C__
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift)), low = _mm_set1_epi32(0xFFFF);
  for (unsigned l = 0; l < kLanes; l += 8) {
    const auto* at = reinterpret_cast<const __m128i*>(source + l);
    const __m128i first = _mm_and_si128(_mm_srl_epi32(_mm_loadu_si128(at), by), low);
    const __m128i second = _mm_and_si128(_mm_srl_epi32(_mm_loadu_si128(at + 1), by), low);
    _mm256_storeu_ps(out.lane + l, _mm256_cvtph_ps(_mm_packus_epi32(first, second)));
  }
#else
  for (unsigned l = 0; l < kLanes; ++l) out.lane[l] = f16_to_f32(source[l] >> shift & 0xFFFF);
#endif
}

// Each lane's f16 in the low half of a dword, zero above.
static inline void pack_f16(const Floats& in, u32* out) {
#ifdef __F16C__
  for (unsigned l = 0; l < kLanes; l += 8)
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(out + l),
        _mm256_cvtepu16_epi32(_mm256_cvtps_ph(_mm256_loadu_ps(in.lane + l), _MM_FROUND_CUR_DIRECTION)));
#else
  for (unsigned l = 0; l < kLanes; ++l) out[l] = f32_to_f16(in.lane[l]);
#endif
}

// a * b + c of f16 values, such that rounding the f32 result to f16 is one rounding.
static inline float fma_f16(float a, float b, float c) {
  const double exact = static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c);
  const u64 bits = as_u64(exact);
  constexpr u64 kBelow = (1ull << 29) - 1;
  const u64 odd = (bits & ~kBelow) | static_cast<u64>((bits & kBelow) != 0) << 29;
  return static_cast<float>(as_f64((bits & 0x7FF0000000000000) == 0x7FF0000000000000 ? bits : odd));
}

// abs, neg of operand n, on f32 values; `neg` may be neg_hi.
static inline void modify_f16(Floats& values, bool abs, bool neg) {
  if (!abs && !neg) [[likely]]
    return;
  const u32 clear = abs ? 0x80000000 : 0, flip = neg ? 0x80000000 : 0;
  for (float& x : values.lane) x = as_f32((as_u32(x) & ~clear) ^ flip);
}

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
