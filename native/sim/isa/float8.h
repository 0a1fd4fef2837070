// The 8-bit floats of gfx940 and later CDNA3: e4m3 ("fp8") and e5m2 ("bf8") in their FNUZ form.
// There is one zero and one NaN (0x80), no infinity, and the exponent bias is one more than IEEE's.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "sim/isa/execute.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {

struct Float8Format {
  int mantissa_bits;
  int bias;
};
static constexpr Float8Format kFp8{3, 8};
static constexpr Float8Format kBf8{2, 16};
static constexpr std::uint8_t kFloat8Nan = 0x80;

static constexpr std::uint32_t float8_to_f32_bits(std::uint8_t bits, Float8Format format) {
  if (bits == kFloat8Nan) return 0x7FC00000;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x80) << 24;
  const int exponent = (bits & 0x7F) >> format.mantissa_bits;
  std::uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
  if (exponent == 0 && mantissa == 0) return sign;
  int biased = exponent == 0 ? 1 : exponent;
  if (exponent == 0) {
    // Every 8-bit denormal is a normal f32.
    while (!(mantissa >> format.mantissa_bits)) {
      mantissa <<= 1;
      --biased;
    }
    mantissa &= (1u << format.mantissa_bits) - 1;
  }
  return sign | static_cast<std::uint32_t>(biased - format.bias + 127) << 23 |
         mantissa << (23 - format.mantissa_bits);
}

namespace detail {
static constexpr std::array<std::uint32_t, 256> float8_table(Float8Format format) {
  std::array<std::uint32_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) table[i] = float8_to_f32_bits(static_cast<std::uint8_t>(i), format);
  return table;
}
}  // namespace detail

static constexpr std::array<std::uint32_t, 256> kFp8ToF32 = detail::float8_table(kFp8);
static constexpr std::array<std::uint32_t, 256> kBf8ToF32 = detail::float8_table(kBf8);

// Rounds f32 `bits` to 8 bits: to nearest even, or with `stochastic`, by adding the upper bits of
// `random` to what is cut off. Too large is NaN, or with `saturate` (MODE.FP16_OVFL) the largest value.
static constexpr std::uint8_t f32_bits_to_float8(std::uint32_t bits, Float8Format format, bool saturate,
                                                 bool stochastic = false, std::uint32_t random = 0) {
  const std::uint8_t sign = static_cast<std::uint8_t>(bits >> 24 & 0x80);
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return kFloat8Nan;
  const std::uint8_t overflow = saturate ? static_cast<std::uint8_t>(sign | 0x7F) : kFloat8Nan;
  if (magnitude == 0x7F800000) return overflow;
  int exponent = static_cast<int>(magnitude >> 23);
  std::uint64_t mantissa = magnitude & 0x7FFFFF;
  if (exponent == 0)
    exponent = 1;
  else
    mantissa |= 0x800000;
  int target = exponent - 127 + format.bias;
  int cut = 23 - format.mantissa_bits;
  if (target < 1) {
    cut += 1 - target;
    target = 1;
  }
  if (cut > 40) return 0;
  const std::uint64_t below = (std::uint64_t{1} << cut) - 1;
  std::uint64_t kept = mantissa >> cut;
  if (stochastic) {
    const std::uint64_t noise = cut <= 32 ? random >> (32 - cut) : std::uint64_t{random} << (cut - 32);
    kept = (mantissa + noise) >> cut;
  } else {
    const std::uint64_t half = std::uint64_t{1} << (cut - 1);
    const std::uint64_t rest = mantissa & below;
    if (rest > half || (rest == half && (kept & 1))) ++kept;
  }
  // `kept` holds the implied bit: adding it to the exponent below carries by itself.
  const std::uint64_t code = (static_cast<std::uint64_t>(target - 1) << format.mantissa_bits) + kept;
  if (code > 0x7F) return overflow;
  return code == 0 ? 0 : static_cast<std::uint8_t>(sign | code);  // there is no negative zero
}

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
