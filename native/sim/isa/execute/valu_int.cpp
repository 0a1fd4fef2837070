// 32-bit integer and bit operations of the vector ALU.
#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

#define I1(name, expr) {name, [](Wave& w, const Inst& i) { map1(w, i, [](u32 a) -> u32 { return (expr); }); }}
#define I2(name, expr) \
  {name, [](Wave& w, const Inst& i) { map2(w, i, [](u32 a, u32 b) -> u32 { return (expr); }); }}
#define I3(name, expr) \
  {name, [](Wave& w, const Inst& i) { map3(w, i, [](u32 a, u32 b, u32 c) -> u32 { return (expr); }); }}
// Signed results of signed sources x, y, z.
#define S2(name, expr)                                             \
  {name, [](Wave& w, const Inst& i) {                              \
     map2(w, i, [](u32 a, u32 b) -> u32 {                          \
       const i32 x = static_cast<i32>(a), y = static_cast<i32>(b); \
       return static_cast<u32>(expr);                              \
     });                                                           \
   }}
#define S3(name, expr)                                                                      \
  {name, [](Wave& w, const Inst& i) {                                                       \
     map3(w, i, [](u32 a, u32 b, u32 c) -> u32 {                                            \
       const i32 x = static_cast<i32>(a), y = static_cast<i32>(b), z = static_cast<i32>(c); \
       return static_cast<u32>(expr);                                                       \
     });                                                                                    \
   }}

constexpr i32 sext24(u32 a) { return static_cast<i32>(a << 8) >> 8; }
constexpr u32 low24(u32 a) { return a & 0xFFFFFFu; }
template <class T>
constexpr T least(T a, T b) {
  return a < b ? a : b;
}
template <class T>
constexpr T most(T a, T b) {
  return a > b ? a : b;
}
template <class T>
constexpr T middle(T a, T b, T c) {
  return most(least(a, b), least(most(a, b), c));
}

u32 reverse_bits(u32 x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0F0F0F0Fu) | (x & 0x0F0F0F0Fu) << 4;
  return __builtin_bswap32(x);
}
u32 bfe_u32(u32 a, u32 b, u32 c) { return a >> (b & 31u) & ((1u << (c & 31u)) - 1u); }
// A field that reaches beyond bit 31 continues with the sign (the shift is arithmetic).
u32 bfe_i32(u32 a, u32 b, u32 c) {
  const unsigned width = c & 31u;
  if (width == 0) return 0;
  const u32 field = static_cast<u32>(static_cast<i32>(a) >> (b & 31u)) & ((1u << width) - 1u);
  return static_cast<u32>(static_cast<i32>(field << (32 - width)) >> (32 - width));
}
u32 ffbh_i32(u32 a) {
  const u32 x = static_cast<i32>(a) < 0 ? ~a : a;
  return x == 0 ? ~0u : static_cast<u32>(std::countl_zero(x));
}
// Bytes 0..7 of {a, b}; 8..11 the sign of a half, 12 is 0, above 12 0xFF (v_perm_b32).
u32 permute_bytes(u32 a, u32 b, u32 select) {
  const u64 data = static_cast<u64>(a) << 32 | b;
  u32 result = 0;
  for (unsigned n = 0; n < 4; ++n) {
    const u32 s = select >> (8 * n) & 0xFFu;
    u32 byte = 0xFF;
    if (s < 8)
      byte = static_cast<u32>(data >> (8 * s)) & 0xFFu;
    else if (s < 12)
      byte = (data >> (16 * (s - 8) + 15) & 1u) != 0 ? 0xFFu : 0u;
    else if (s == 12)
      byte = 0;
    result |= byte << (8 * n);
  }
  return result;
}
u32 sad_u8(u32 a, u32 b, u32 c) {
  for (unsigned n = 0; n < 32; n += 8) {
    const i32 d = static_cast<i32>(a >> n & 0xFFu) - static_cast<i32>(b >> n & 0xFFu);
    c += static_cast<u32>(d < 0 ? -d : d);
  }
  return c;
}
u32 sad_u16(u32 a, u32 b, u32 c) {
  for (unsigned n = 0; n < 32; n += 16) {
    const i32 d = static_cast<i32>(a >> n & 0xFFFFu) - static_cast<i32>(b >> n & 0xFFFFu);
    c += static_cast<u32>(d < 0 ? -d : d);
  }
  return c;
}
// Bytes of b that are 0 do not count.
u32 msad_u8(u32 a, u32 b, u32 c) {
  for (unsigned n = 0; n < 32; n += 8) {
    const i32 x = static_cast<i32>(a >> n & 0xFFu), y = static_cast<i32>(b >> n & 0xFFu);
    if (y != 0) c += static_cast<u32>(x < y ? y - x : x - y);
  }
  return c;
}
u32 lerp_u8(u32 a, u32 b, u32 c) {
  u32 result = 0;
  for (unsigned n = 0; n < 32; n += 8)
    result |= (((a >> n & 0xFFu) + (b >> n & 0xFFu) + (c >> n & 1u)) >> 1 & 0xFFu) << n;
  return result;
}

// v_mbcnt: bits of the mask below this lane, plus src1.
template <bool High>
void mbcnt(Wave& w, const Inst& i) {
  Reg t0, t1;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  write32(w, i.dst, [=](unsigned l) {
    const u32 below = High ? (l <= 32 ? 0u : (1u << (l - 32)) - 1u) : (l >= 32 ? ~0u : (1u << l) - 1u);
    return static_cast<u32>(std::popcount(a[l] & below)) + b[l];
  });
}

// Adds and subtracts with a carry mask: VCC in VOP2, sdst and src2 in VOP3.
template <bool Subtract, bool Reverse, bool CarryIn>
void carry_op(Wave& w, const Inst& i) {
  Reg t0, t1;
  const u32* a = lanes32(w, i.src[Reverse ? 1 : 0], Reverse ? t1 : t0);
  const u32* b = lanes32(w, i.src[Reverse ? 0 : 1], Reverse ? t0 : t1);
  const u64 in = CarryIn ? read_s64(w, i.src[2]) : 0;
  alignas(64) u32 x[kLanes], y[kLanes];
  std::memcpy(x, a, sizeof x);
  std::memcpy(y, b, sizeof y);
  const auto wide = [&](unsigned l) {
    const u64 carry = in >> l & 1u;
    return Subtract ? static_cast<u64>(x[l]) - y[l] - carry : static_cast<u64>(x[l]) + y[l] + carry;
  };
  const u64 out = ballot(w, [&](unsigned l) { return (wide(l) >> 32 & 1u) != 0; });
  write32(w, i.dst, [&](unsigned l) { return static_cast<u32>(wide(l)); });
  w.set_s64(i.sdst, out);
}

// v_add_u32 and v_sub_u32 saturate with CLAMP.
template <bool Subtract, bool Signed>
void saturating(Wave& w, const Inst& i) {
  map2(w, i, [](u32 a, u32 b) -> u32 {
    const i64 x = Signed ? static_cast<i64>(static_cast<i32>(a)) : static_cast<i64>(a);
    const i64 y = Signed ? static_cast<i64>(static_cast<i32>(b)) : static_cast<i64>(b);
    const i64 r = Subtract ? x - y : x + y;
    const i64 low = Signed ? -0x80000000LL : 0, high = Signed ? 0x7FFFFFFFLL : 0xFFFFFFFFLL;
    return static_cast<u32>(r < low ? low : r > high ? high : r);
  });
}
void add_u32(Wave& w, const Inst& i) {
  map2(w, i, [](u32 a, u32 b) { return a + b; });
}
void sub_u32(Wave& w, const Inst& i) {
  map2(w, i, [](u32 a, u32 b) { return a - b; });
}
void subrev_u32(Wave& w, const Inst& i) {
  map2(w, i, [](u32 a, u32 b) { return b - a; });
}
template <Handler Plain, Handler Clamped>
Handler bind_clamp(Inst& i) {
  return i.has(Inst::clamp) ? Clamped : Plain;
}
Handler bind_subrev(Inst& i) {
  if (!i.has(Inst::clamp)) return subrev_u32;
  std::swap(i.src[0], i.src[1]);
  return i.modifier == Modifier::none ? saturating<true, false> : nullptr;
}

}  // namespace

KERNCAP_SIM_FAMILY(
    valu_int, {"v_add_u32", nullptr, bind_clamp<add_u32, saturating<false, false>>},
    {"v_sub_u32", nullptr, bind_clamp<sub_u32, saturating<true, false>>},
    {"v_subrev_u32", nullptr, bind_subrev},
    {"v_add_i32", nullptr, bind_clamp<add_u32, saturating<false, true>>},
    {"v_sub_i32", nullptr, bind_clamp<sub_u32, saturating<true, true>>},
    {"v_add_co_u32", carry_op<false, false, false>}, {"v_sub_co_u32", carry_op<true, false, false>},
    {"v_subrev_co_u32", carry_op<true, true, false>}, {"v_addc_co_u32", carry_op<false, false, true>},
    {"v_subb_co_u32", carry_op<true, false, true>}, {"v_subbrev_co_u32", carry_op<true, true, true>},
    I2("v_mul_lo_u32", a* b), I2("v_mul_hi_u32", static_cast<u32>(static_cast<u64>(a) * b >> 32)),
    S2("v_mul_hi_i32", static_cast<u64>(static_cast<i64>(x) * y) >> 32),
    I2("v_mul_u32_u24", low24(a) * low24(b)),
    I2("v_mul_i32_i24", static_cast<u32>(sext24(a)) * static_cast<u32>(sext24(b))),
    I2("v_mul_hi_u32_u24", static_cast<u32>(static_cast<u64>(low24(a)) * low24(b) >> 32)),
    I2("v_mul_hi_i32_i24", static_cast<u32>(static_cast<u64>(static_cast<i64>(sext24(a)) * sext24(b)) >> 32)),
    I3("v_mad_u32_u24", low24(a) * low24(b) + c),
    I3("v_mad_i32_i24", static_cast<u32>(sext24(a)) * static_cast<u32>(sext24(b)) + c), I2("v_and_b32", a& b),
    I2("v_or_b32", a | b), I2("v_xor_b32", a ^ b), I2("v_xnor_b32", ~(a ^ b)), I1("v_not_b32", ~a),
    I2("v_lshlrev_b32", b << (a & 31u)), I2("v_lshrrev_b32", b >> (a & 31u)),
    I2("v_ashrrev_i32", static_cast<u32>(static_cast<i32>(b) >> (a & 31u))), S2("v_min_i32", least(x, y)),
    S2("v_max_i32", most(x, y)), I2("v_min_u32", least(a, b)), I2("v_max_u32", most(a, b)),
    S3("v_min3_i32", least(least(x, y), z)), S3("v_max3_i32", most(most(x, y), z)),
    S3("v_med3_i32", middle(x, y, z)), I3("v_min3_u32", least(least(a, b), c)),
    I3("v_max3_u32", most(most(a, b), c)), I3("v_med3_u32", middle(a, b, c)),
    I3("v_bfe_u32", bfe_u32(a, b, c)), I3("v_bfe_i32", bfe_i32(a, b, c)), I3("v_bfi_b32", (a & b) | (~a & c)),
    I2("v_bfm_b32", ((1u << (a & 31u)) - 1u) << (b & 31u)), I1("v_bfrev_b32", reverse_bits(a)),
    I1("v_ffbh_u32", a == 0 ? ~0u : static_cast<u32>(std::countl_zero(a))),
    I1("v_ffbl_b32", a == 0 ? ~0u : static_cast<u32>(std::countr_zero(a))), I1("v_ffbh_i32", ffbh_i32(a)),
    I2("v_bcnt_u32_b32", static_cast<u32>(std::popcount(a)) + b), {"v_mbcnt_lo_u32_b32", mbcnt<false>},
    {"v_mbcnt_hi_u32_b32", mbcnt<true>}, I3("v_add3_u32", a + b + c),
    I3("v_lshl_add_u32", (a << (b & 31u)) + c), I3("v_add_lshl_u32", (a + b) << (c & 31u)),
    I3("v_lshl_or_b32", a << (b & 31u) | c), I3("v_and_or_b32", (a & b) | c), I3("v_or3_b32", a | b | c),
    I3("v_xad_u32", (a ^ b) + c),
    I3("v_alignbit_b32", static_cast<u32>((static_cast<u64>(a) << 32 | b) >> (c & 31u))),
    I3("v_alignbyte_b32", static_cast<u32>((static_cast<u64>(a) << 32 | b) >> (8 * (c & 3u)))),
    I3("v_perm_b32", permute_bytes(a, b, c)), I3("v_sad_u8", sad_u8(a, b, c)),
    I3("v_sad_hi_u8", (sad_u8(a, b, 0) << 16) + c), I3("v_sad_u16", sad_u16(a, b, c)),
    I3("v_sad_u32", (a > b ? a - b : b - a) + c), I3("v_msad_u8", msad_u8(a, b, c)),
    I3("v_lerp_u8", lerp_u8(a, b, c)))

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
