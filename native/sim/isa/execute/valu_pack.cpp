// Conversions that pack two results or select a byte: 8-bit floats, normalised and saturated integers.
#include "sim/isa/float8.h"
#include "sim/isa/half.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

// ---- 8-bit floats
// -------------------------------------------------------------------------------------------

constexpr u32 kFp16Ovfl = 1u << 23;  // MODE.FP16_OVFL

template <const std::array<u32, 256>& Table>
void cvt_f32_float8(Wave& w, const Inst& i) {
  map1(w, i, [&i](u32 a) { return as_u32(output32(i, as_f32(Table[a & 0xFF]))); });
}
template <const std::array<u32, 256>& Table>
void cvt_pk_f32_float8(Wave& w, const Inst& i) {
  Reg t;
  const u32* a = lanes32(w, i.src[0], t);
  // OP_SEL takes the upper word; the result may overlap the source.
  const unsigned shift = i.op_sel & 1u ? 16 : 0;
  Reg hi;
  for (unsigned l = 0; l < kLanes; ++l) hi.lane[l] = Table[a[l] >> (shift + 8) & 0xFF];
  write32(w, i.dst, [=](unsigned l) { return Table[a[l] >> shift & 0xFF]; });
  write32(w, i.dst + 1, [&](unsigned l) { return hi.lane[l]; });
}

template <const Float8Format& Format>
void cvt_pk_float8(Wave& w, const Inst& i) {
  const SignBits s0 = sign_bits(i, 0), s1 = sign_bits(i, 1);
  const bool saturate = (w.mode & kFp16Ovfl) != 0 || i.has(Inst::clamp);
  Reg t0, t1;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  const u32* old = w.v[i.dst].lane;
  const unsigned shift = i.op_sel & 8 ? 16 : 0;
  write32(w, i.dst, [&](unsigned l) {
    const u32 word = f32_bits_to_float8(s0(a[l]), Format, saturate) |
                     static_cast<u32>(f32_bits_to_float8(s1(b[l]), Format, saturate)) << 8;
    return (old[l] & ~(0xFFFFu << shift)) | word << shift;
  });
}
// src1 holds random bits; OP_SEL[3:2] names the byte that is written.
template <const Float8Format& Format>
void cvt_sr_float8(Wave& w, const Inst& i) {
  const SignBits s0 = sign_bits(i, 0);
  const bool saturate = (w.mode & kFp16Ovfl) != 0 || i.has(Inst::clamp);
  Reg t0, t1;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* random = lanes32(w, i.src[1], t1);
  const u32* old = w.v[i.dst].lane;
  const unsigned shift = (i.op_sel >> 2 & 3u) * 8;
  write32(w, i.dst, [&](unsigned l) {
    const u32 byte = f32_bits_to_float8(s0(a[l]), Format, saturate, true, random[l]);
    return (old[l] & ~(0xFFu << shift)) | byte << shift;
  });
}

// ---- Pairs of 16-bit values
// -----------------------------------------------------------------------------------

template <class F>
void pack2(Wave& w, const Inst& i, F f) {
  map2(w, i, [=](u32 a, u32 b) { return (f(a) & 0xFFFF) | f(b) << 16; });
}
float between(float x, float low, float high) { return x != x ? 0.0F : x < low ? low : x > high ? high : x; }

u32 norm_i16(float x) {
  return static_cast<u32>(static_cast<i32>(__builtin_rintf(between(x, -1, 1) * 32767.0F)));
}
u32 norm_u16(float x) {
  return static_cast<u32>(static_cast<i32>(__builtin_rintf(between(x, 0, 1) * 65535.0F)));
}

template <u32 (*Norm)(float)>
void cvt_pknorm_f32(Wave& w, const Inst& i) {
  const SignBits s0 = sign_bits(i, 0), s1 = sign_bits(i, 1);
  map2(w, i, [=](u32 a, u32 b) { return (Norm(as_f32(s0(a))) & 0xFFFF) | Norm(as_f32(s1(b))) << 16; });
}
template <u32 (*Norm)(float)>
void cvt_pknorm_f16(Wave& w, const Inst& i) {
  Floats s[2];
  for (unsigned n = 0; n < 2; ++n) {
    Reg t;
    unpack_f16(lanes32(w, i.src[n], t), (i.op_sel >> n & 1u) * 16, s[n]);
    modify_f16(s[n], i.abs >> n & 1u, i.neg >> n & 1u);
  }
  write32(w, i.dst, [&](unsigned l) { return (Norm(s[0].lane[l]) & 0xFFFF) | Norm(s[1].lane[l]) << 16; });
}

// Towards zero, whatever the mode: a too large finite value becomes the largest f16.
u32 f16_towards_zero(float x) {
  const u32 bits = as_u32(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7FFFFFFF;
  if (rest > 0x7F800000) return sign | 0x7E00 | (rest >> 13 & 0x3FF);
  if (rest == 0x7F800000) return sign | 0x7C00;
  const i32 exponent = static_cast<i32>(rest >> 23) - 127 + 15;
  if (exponent >= 31) return sign | 0x7BFF;
  const u32 mantissa = (rest & 0x7FFFFF) | 0x800000;
  if (exponent > 0) return sign | static_cast<u32>(exponent) << 10 | (mantissa >> 13 & 0x3FF);
  const i32 shift = 14 - exponent;
  return sign | (shift > 24 ? 0 : mantissa >> shift);
}
void cvt_pkrtz(Wave& w, const Inst& i) {
  const SignBits s0 = sign_bits(i, 0), s1 = sign_bits(i, 1);
  map2(w, i,
       [=](u32 a, u32 b) { return f16_towards_zero(as_f32(s0(a))) | f16_towards_zero(as_f32(s1(b))) << 16; });
}
void cvt_pk_u16_u32(Wave& w, const Inst& i) {
  pack2(w, i, [](u32 a) { return a > 65535 ? 65535u : a; });
}
void cvt_pk_i16_i32(Wave& w, const Inst& i) {
  pack2(w, i, [](u32 a) {
    const i32 x = static_cast<i32>(a);
    return static_cast<u32>(x > 32767 ? 32767 : x < -32768 ? -32768 : x);
  });
}
void sat_pk_u8_i16(Wave& w, const Inst& i) {
  map1(w, i, [](u32 a) {
    const auto saturate = [](i32 x) { return static_cast<u32>(x < 0 ? 0 : x > 255 ? 255 : x); };
    return saturate(static_cast<i16>(a)) | saturate(static_cast<i16>(a >> 16)) << 8;
  });
}
// The byte of the destination that src1 names becomes src0, rounded and saturated.
void cvt_pkaccum_u8_f32(Wave& w, const Inst& i) {
  Reg t0, t1;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  const u32* old = w.v[i.dst].lane;
  const SignBits s0 = sign_bits(i, 0);
  write32(w, i.dst, [=](unsigned l) {
    const u32 byte = static_cast<u32>(static_cast<i32>(__builtin_rintf(between(as_f32(s0(a[l])), 0, 255))));
    const unsigned shift = (b[l] & 3) * 8;
    return (old[l] & ~(0xFFu << shift)) | byte << shift;
  });
}

}  // namespace

KERNCAP_SIM_FAMILY(valu_pack, {"v_cvt_f32_fp8", cvt_f32_float8<kFp8ToF32>},
                   {"v_cvt_f32_bf8", cvt_f32_float8<kBf8ToF32>},
                   {"v_cvt_pk_f32_fp8", cvt_pk_f32_float8<kFp8ToF32>},
                   {"v_cvt_pk_f32_bf8", cvt_pk_f32_float8<kBf8ToF32>},
                   {"v_cvt_pk_fp8_f32", cvt_pk_float8<kFp8>}, {"v_cvt_pk_bf8_f32", cvt_pk_float8<kBf8>},
                   {"v_cvt_sr_fp8_f32", cvt_sr_float8<kFp8>}, {"v_cvt_sr_bf8_f32", cvt_sr_float8<kBf8>},
                   {"v_cvt_pknorm_i16_f32", cvt_pknorm_f32<norm_i16>},
                   {"v_cvt_pknorm_u16_f32", cvt_pknorm_f32<norm_u16>},
                   {"v_cvt_pknorm_i16_f16", cvt_pknorm_f16<norm_i16>},
                   {"v_cvt_pknorm_u16_f16", cvt_pknorm_f16<norm_u16>}, {"v_cvt_pkrtz_f16_f32", cvt_pkrtz},
                   {"v_cvt_pk_u16_u32", cvt_pk_u16_u32}, {"v_cvt_pk_i16_i32", cvt_pk_i16_i32},
                   {"v_sat_pk_u8_i16", sat_pk_u8_i16}, {"v_cvt_pkaccum_u8_f32", cvt_pkaccum_u8_f32})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
