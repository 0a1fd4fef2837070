// How the matrix cores see their operands (CDNA3 ISA document, "Matrix Arithmetic Instructions"):
// element e of lane l of A, with E elements a lane, is A[l % M][E * (l / (M * blocks)) + e] of block l / M %
// blocks; B likewise with N. Registers are 64 dwords each, one after the other.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "sim/isa/float8.h"
#include "sim/isa/wave.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL::matrix {

static constexpr int kWave = 64;

// What an operand register holds. Each kind says how wide an element is, what it is computed in, and
// how element `e` of `count` lanes that start at `registers` is unpacked.
struct F32 {
  using Compute = float;
  static constexpr int kBits = 32;
  static void unpack(const std::uint32_t* registers, int e, int count, float* out) {
    const std::uint32_t* source = registers + e * kWave;
    for (int i = 0; i < count; ++i) out[i] = std::bit_cast<float>(source[i]);
  }
};

// "XF32": f32 whose mantissa is rounded to 10 bits, to nearest even.
struct Xf32 {
  using Compute = float;
  static constexpr int kBits = 32;
  static void unpack(const std::uint32_t* registers, int e, int count, float* out) {
    const std::uint32_t* source = registers + e * kWave;
    for (int i = 0; i < count; ++i) {
      const std::uint32_t x = source[i];
      const bool finite = (x & 0x7F800000) != 0x7F800000;
      const std::uint32_t rounded = (x + 0xFFF + (x >> 13 & 1)) & ~0x1FFFu;
      out[i] = std::bit_cast<float>(finite ? rounded : x);
    }
  }
};

struct F16 {
  using Compute = float;
  static constexpr int kBits = 16;
  static constexpr float kLeastNormal = 0x1p-14F;
  static void unpack(const std::uint32_t* registers, int e, int count, float* out) {
    const std::uint32_t* source = registers + (e >> 1) * kWave;
    const int shift = (e & 1) * 16;
    int i = 0;
#ifdef __F16C__
    const __m128i by = _mm_cvtsi32_si128(shift), low = _mm_set1_epi32(0xFFFF);
    for (; i + 8 <= count; i += 8) {
      const auto* at = reinterpret_cast<const __m128i*>(source + i);
      const __m128i first = _mm_and_si128(_mm_srl_epi32(_mm_loadu_si128(at), by), low);
      const __m128i second = _mm_and_si128(_mm_srl_epi32(_mm_loadu_si128(at + 1), by), low);
      _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_packus_epi32(first, second)));
    }
#endif
    for (; i < count; ++i) out[i] = scalar(static_cast<std::uint16_t>(source[i] >> shift));
  }
  static float scalar(std::uint16_t h) {
    const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000) << 16, rest = h & 0x7FFF;
    if (rest >= 0x7C00) return std::bit_cast<float>(sign | 0x7F800000 | (rest & 0x3FF) << 13);
    // 2^112 moves f16's exponent bias to f32's; denormals become exact as well.
    const float value = std::bit_cast<float>(rest << 13) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
};

struct Bf16 {
  using Compute = float;
  static constexpr int kBits = 16;
  static constexpr float kLeastNormal = 0x1p-126F;
  static void unpack(const std::uint32_t* registers, int e, int count, float* out) {
    const std::uint32_t* source = registers + (e >> 1) * kWave;
    const int shift = (e & 1) * 16;
    for (int i = 0; i < count; ++i) out[i] = std::bit_cast<float>(source[i] >> shift << 16);
  }
};

template <const std::array<std::uint32_t, 256>& Table>
struct Float8 {
  using Compute = float;
  static constexpr int kBits = 8;
  static void unpack(const std::uint32_t* registers, int e, int count, float* out) {
    const std::uint32_t* source = registers + (e >> 2) * kWave;
    const int shift = (e & 3) * 8;
    for (int i = 0; i < count; ++i) out[i] = std::bit_cast<float>(Table[source[i] >> shift & 0xFF]);
  }
};
using Fp8 = Float8<kFp8ToF32>;
using Bf8 = Float8<kBf8ToF32>;

struct I8 {
  using Compute = std::int32_t;
  static constexpr int kBits = 8;
  static void unpack(const std::uint32_t* registers, int e, int count, std::int32_t* out) {
    const std::uint32_t* source = registers + (e >> 2) * kWave;
    const int shift = (e & 3) * 8;
    for (int i = 0; i < count; ++i) out[i] = static_cast<std::int8_t>(source[i] >> shift);
  }
};

struct F64 {
  using Compute = double;
  static constexpr int kBits = 64;
  static void unpack(const std::uint32_t* registers, int e, int count, double* out) {
    const std::uint32_t* low = registers + 2 * e * kWave;
    const std::uint32_t* high = low + kWave;
    for (int i = 0; i < count; ++i)
      out[i] = std::bit_cast<double>(static_cast<std::uint64_t>(high[i]) << 32 | low[i]);
  }
};

// All of one operand as [block][k][row]: `Rows` is M of A and N of B.
template <class Kind, int Rows, int K, int Blocks>
struct MatrixOperand {
  static constexpr int kElements = Rows * K * Blocks / kWave;  // a lane
  static constexpr int kRegisters = kElements * Kind::kBits / 32 > 0 ? kElements * Kind::kBits / 32 : 1;
  alignas(64) typename Kind::Compute at[Blocks][K][Rows];

  void load(const std::uint32_t* registers) {
    constexpr int kGroups = kWave / (Rows * Blocks);
    for (int g = 0; g < kGroups; ++g)
      for (int b = 0; b < Blocks; ++b)
        for (int e = 0; e < kElements; ++e)
          Kind::unpack(registers + (g * Blocks + b) * Rows, e, Rows, at[b][g * kElements + e]);
  }
  // Values closer to 0 than `normal` become 0 of the same sign.
  void flush_below(float normal) {
    for (auto& block : at)
      for (auto& k : block)
        for (auto& value : k) value = std::abs(value) < normal ? std::copysign(0.0F, value) : value;
  }
  void negate() {
    for (auto& block : at)
      for (auto& k : block)
        for (auto& value : k) value = -value;
  }
};

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL::matrix
