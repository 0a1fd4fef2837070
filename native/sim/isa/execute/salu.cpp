// SOP1, SOP2, SOPC and SOPK: the scalar ALU (CDNA3 ISA document, "Scalar ALU operations").
#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

// An operation of one or two sources: `d` from `a` and `b`; then SCC, or nothing.
#define UNARY(name, in, A, out, D, expr, ...)           \
  {name, [](Wave& w, const Inst& i) {                   \
     [[maybe_unused]] const A a = in(w, i.src[0]);      \
     [[maybe_unused]] const D d = static_cast<D>(expr); \
     out(w, i.dst, d);                                  \
     __VA_ARGS__;                                       \
   }}
#define BINARY(name, in, A, in1, B, out, D, expr, ...)  \
  {name, [](Wave& w, const Inst& i) {                   \
     [[maybe_unused]] const A a = in(w, i.src[0]);      \
     [[maybe_unused]] const B b = in1(w, i.src[1]);     \
     [[maybe_unused]] const D d = static_cast<D>(expr); \
     out(w, i.dst, d);                                  \
     __VA_ARGS__;                                       \
   }}
#define U1(name, expr, ...) UNARY(name, read_s32, u32, write32s, u32, expr, __VA_ARGS__)
#define Q1(name, expr, ...) UNARY(name, read_s64, u64, write64s, u64, expr, __VA_ARGS__)
#define U2(name, expr, ...) BINARY(name, read_s32, u32, read_s32, u32, write32s, u32, expr, __VA_ARGS__)
#define Q2(name, expr, ...) BINARY(name, read_s64, u64, read_s64, u64, write64s, u64, expr, __VA_ARGS__)
#define Q2S(name, expr, ...) BINARY(name, read_s64, u64, read_s32, u32, write64s, u64, expr, __VA_ARGS__)
#define NONZERO w.scc = d != 0
#define COMPARE(name, in, T, expr)                   \
  {name, [](Wave& w, const Inst& i) {                \
     const auto a = static_cast<T>(in(w, i.src[0])); \
     const auto b = static_cast<T>(in(w, i.src[1])); \
     w.scc = (expr);                                 \
   }}
#define COMPAREK(name, T, K, expr)                         \
  {name, [](Wave& w, const Inst& i) {                      \
     const auto a = static_cast<T>(w.s[i.dst]);            \
     const auto b = static_cast<T>(static_cast<K>(i.imm)); \
     w.scc = (expr);                                       \
   }}
// Saves EXEC and combines it with the source (`a`, old EXEC `e`).
#define SAVEEXEC(name, expr)              \
  {name, [](Wave& w, const Inst& i) {     \
     const u64 a = read_s64(w, i.src[0]); \
     const u64 e = w.exec();              \
     w.set_s64(i.dst, e);                 \
     w.set_exec(expr);                    \
     w.scc = w.exec() != 0;               \
   }}
#define WREXEC(name, expr)                \
  {name, [](Wave& w, const Inst& i) {     \
     const u64 a = read_s64(w, i.src[0]); \
     const u64 e = w.exec();              \
     w.set_exec(expr);                    \
     w.set_s64(i.dst, expr);              \
     w.scc = w.exec() != 0;               \
   }}

inline void write32s(Wave& w, unsigned dst, u32 value) { w.s[dst] = value; }
inline void write64s(Wave& w, unsigned dst, u64 value) { w.set_s64(dst, value); }

u32 reverse32(u32 x) {
  u32 r = 0;
  for (unsigned b = 0; b < 32; ++b) r |= (x >> b & 1u) << (31 - b);
  return r;
}
u64 reverse64(u64 x) {
  return static_cast<u64>(reverse32(static_cast<u32>(x))) << 32 | reverse32(static_cast<u32>(x >> 32));
}
template <class T>
u32 first_one(T x) {
  return x == 0 ? ~0u : static_cast<u32>(std::countr_zero(x));
}
template <class T>
u32 leading(T x) {
  return x == 0 ? ~0u : static_cast<u32>(std::countl_zero(x));
}
// Bits before the first that differs from the sign; -1 where none does.
u32 leading_sign32(u32 x) { return leading<u32>(static_cast<i32>(x) < 0 ? ~x : x); }
u32 leading_sign64(u64 x) { return leading<u64>(static_cast<i64>(x) < 0 ? ~x : x); }

u64 whole_quads(u64 x) {
  u64 r = 0;
  for (unsigned q = 0; q < 64; q += 4)
    if ((x >> q & 15u) != 0) r |= 15ull << q;
  return r;
}
u64 quad_bits(u64 x) {
  u64 r = 0;
  for (unsigned q = 0; q < 64; q += 4)
    if ((x >> q & 15u) != 0) r |= 1ull << (q / 4);
  return r;
}
u64 replicate_bits(u32 x) {
  u64 r = 0;
  for (unsigned b = 0; b < 32; ++b)
    if ((x >> b & 1u) != 0) r |= 3ull << (2 * b);
  return r;
}
template <class U, class S>
U field_unsigned(U a, u32 b, unsigned position_mask) {
  const unsigned position = b & position_mask, width = b >> 16 & 0x7Fu;
  if (width == 0) return 0;
  const U shifted = a >> position;
  return width >= sizeof(U) * 8 ? shifted : shifted & ((U{1} << width) - 1);
}
template <class U, class S>
U field_signed(U a, u32 b, unsigned position_mask) {
  const unsigned bits = sizeof(U) * 8, position = b & position_mask, width = b >> 16 & 0x7Fu;
  if (width == 0) return 0;
  const S shifted = static_cast<S>(a) >> position;
  if (width >= bits) return static_cast<U>(shifted);
  return static_cast<U>(static_cast<S>(static_cast<U>(shifted) << (bits - width)) >> (bits - width));
}
bool add_overflows(u32 a, u32 b, u32 d) { return ((~(a ^ b) & (a ^ d)) >> 31) != 0; }
bool subtract_overflows(u32 a, u32 b, u32 d) { return (((a ^ b) & (a ^ d)) >> 31) != 0; }

// s_movrels and s_movreld: M0 is added to an SGPR number.
unsigned relative(const Wave& w, unsigned reg) {
  const unsigned index = reg + w.s[kSrcM0];
  if (index > 106)
    throw Trouble{Fault::Kind::illegal_instruction, -1, 0, 0,
                  "s_movrel: M0 points outside the scalar registers"};
  return index;
}

}  // namespace

KERNCAP_SIM_FAMILY(
    salu,
    // SOP2
    U2("s_add_u32", a + b, w.scc = d < a), U2("s_sub_u32", a - b, w.scc = a < b),
    U2("s_add_i32", a + b, w.scc = add_overflows(a, b, d)),
    U2("s_sub_i32", a - b, w.scc = subtract_overflows(a, b, d)),
    {"s_addc_u32", [](Wave& w, const Inst& i) {
       const u64 sum = static_cast<u64>(read_s32(w, i.src[0])) + read_s32(w, i.src[1]) + w.scc;
       w.s[i.dst] = static_cast<u32>(sum);
       w.scc = static_cast<u32>(sum >> 32);
     }},
    {"s_subb_u32", [](Wave& w, const Inst& i) {
       const u64 a = read_s32(w, i.src[0]), b = static_cast<u64>(read_s32(w, i.src[1])) + w.scc;
       w.s[i.dst] = static_cast<u32>(a - b);
       w.scc = b > a;
     }},
    U2("s_min_i32", static_cast<i32>(a) < static_cast<i32>(b) ? a : b, w.scc = static_cast<i32>(a) < static_cast<i32>(b)),
    U2("s_min_u32", a < b ? a : b, w.scc = a < b),
    U2("s_max_i32", static_cast<i32>(a) > static_cast<i32>(b) ? a : b, w.scc = static_cast<i32>(a) > static_cast<i32>(b)),
    U2("s_max_u32", a > b ? a : b, w.scc = a > b), U2("s_cselect_b32", w.scc ? a : b), Q2("s_cselect_b64", w.scc ? a : b),
    U2("s_and_b32", a & b, NONZERO), Q2("s_and_b64", a & b, NONZERO), U2("s_or_b32", a | b, NONZERO),
    Q2("s_or_b64", a | b, NONZERO), U2("s_xor_b32", a ^ b, NONZERO), Q2("s_xor_b64", a ^ b, NONZERO),
    U2("s_andn2_b32", a & ~b, NONZERO), Q2("s_andn2_b64", a & ~b, NONZERO), U2("s_orn2_b32", a | ~b, NONZERO),
    Q2("s_orn2_b64", a | ~b, NONZERO), U2("s_nand_b32", ~(a & b), NONZERO), Q2("s_nand_b64", ~(a & b), NONZERO),
    U2("s_nor_b32", ~(a | b), NONZERO), Q2("s_nor_b64", ~(a | b), NONZERO), U2("s_xnor_b32", ~(a ^ b), NONZERO),
    Q2("s_xnor_b64", ~(a ^ b), NONZERO), U2("s_lshl_b32", a << (b & 31u), NONZERO),
    Q2S("s_lshl_b64", a << (b & 63u), NONZERO), U2("s_lshr_b32", a >> (b & 31u), NONZERO),
    Q2S("s_lshr_b64", a >> (b & 63u), NONZERO), U2("s_ashr_i32", static_cast<i32>(a) >> (b & 31u), NONZERO),
    Q2S("s_ashr_i64", static_cast<i64>(a) >> (b & 63u), NONZERO),
    U2("s_bfm_b32", ((1u << (a & 31u)) - 1u) << (b & 31u)),
    BINARY("s_bfm_b64", read_s32, u32, read_s32, u32, write64s, u64, ((1ull << (a & 63u)) - 1u) << (b & 63u)),
    U2("s_mul_i32", a * b), U2("s_bfe_u32", (field_unsigned<u32, i32>(a, b, 31)), NONZERO),
    U2("s_bfe_i32", (field_signed<u32, i32>(a, b, 31)), NONZERO),
    Q2S("s_bfe_u64", (field_unsigned<u64, i64>(a, b, 63)), NONZERO),
    Q2S("s_bfe_i64", (field_signed<u64, i64>(a, b, 63)), NONZERO),
    U2("s_absdiff_i32", static_cast<i32>(a - b) < 0 ? b - a : a - b, NONZERO),
    U2("s_mul_hi_u32", static_cast<u64>(a) * b >> 32),
    U2("s_mul_hi_i32", static_cast<u64>(static_cast<i64>(static_cast<i32>(a)) * static_cast<i32>(b)) >> 32),
    U2("s_lshl1_add_u32", (a << 1) + b, w.scc = ((static_cast<u64>(a) << 1) + b) >> 32 != 0),
    U2("s_lshl2_add_u32", (a << 2) + b, w.scc = ((static_cast<u64>(a) << 2) + b) >> 32 != 0),
    U2("s_lshl3_add_u32", (a << 3) + b, w.scc = ((static_cast<u64>(a) << 3) + b) >> 32 != 0),
    U2("s_lshl4_add_u32", (a << 4) + b, w.scc = ((static_cast<u64>(a) << 4) + b) >> 32 != 0),
    U2("s_pack_ll_b32_b16", (a & 0xFFFFu) | b << 16), U2("s_pack_lh_b32_b16", (a & 0xFFFFu) | (b & 0xFFFF0000u)),
    U2("s_pack_hh_b32_b16", a >> 16 | (b & 0xFFFF0000u)),
    // SOP1
    U1("s_mov_b32", a), Q1("s_mov_b64", a),
    {"s_cmov_b32", [](Wave& w, const Inst& i) { if (w.scc) w.s[i.dst] = read_s32(w, i.src[0]); }},
    {"s_cmov_b64", [](Wave& w, const Inst& i) { if (w.scc) w.set_s64(i.dst, read_s64(w, i.src[0])); }},
    U1("s_not_b32", ~a, NONZERO), Q1("s_not_b64", ~a, NONZERO), U1("s_wqm_b32", whole_quads(a), NONZERO),
    Q1("s_wqm_b64", whole_quads(a), NONZERO), U1("s_quadmask_b32", quad_bits(a), NONZERO),
    Q1("s_quadmask_b64", quad_bits(a), NONZERO), U1("s_brev_b32", reverse32(a)), Q1("s_brev_b64", reverse64(a)),
    U1("s_bcnt0_i32_b32", 32 - std::popcount(a), NONZERO), U1("s_bcnt1_i32_b32", std::popcount(a), NONZERO),
    UNARY("s_bcnt0_i32_b64", read_s64, u64, write32s, u32, 64 - std::popcount(a), NONZERO),
    UNARY("s_bcnt1_i32_b64", read_s64, u64, write32s, u32, std::popcount(a), NONZERO),
    U1("s_ff0_i32_b32", first_one<u32>(~a)), UNARY("s_ff0_i32_b64", read_s64, u64, write32s, u32, first_one<u64>(~a)),
    U1("s_ff1_i32_b32", first_one<u32>(a)), UNARY("s_ff1_i32_b64", read_s64, u64, write32s, u32, first_one<u64>(a)),
    U1("s_flbit_i32_b32", leading<u32>(a)), UNARY("s_flbit_i32_b64", read_s64, u64, write32s, u32, leading<u64>(a)),
    U1("s_flbit_i32", leading_sign32(a)), UNARY("s_flbit_i32_i64", read_s64, u64, write32s, u32, leading_sign64(a)),
    U1("s_sext_i32_i8", static_cast<i32>(static_cast<std::int8_t>(a))),
    U1("s_sext_i32_i16", static_cast<i32>(static_cast<i16>(a))),
    U1("s_bitset0_b32", w.s[i.dst] & ~(1u << (a & 31u))), U1("s_bitset1_b32", w.s[i.dst] | 1u << (a & 31u)),
    UNARY("s_bitset0_b64", read_s32, u32, write64s, u64, w.s64(i.dst) & ~(1ull << (a & 63u))),
    UNARY("s_bitset1_b64", read_s32, u32, write64s, u64, w.s64(i.dst) | 1ull << (a & 63u)),
    U1("s_abs_i32", static_cast<i32>(a) < 0 ? 0u - a : a, NONZERO),
    UNARY("s_bitreplicate_b64_b32", read_s32, u32, write64s, u64, replicate_bits(a)),
    {"s_movrels_b32", [](Wave& w, const Inst& i) { w.s[i.dst] = w.s[relative(w, i.src[0].reg)]; }},
    {"s_movrels_b64", [](Wave& w, const Inst& i) { w.set_s64(i.dst, w.s64(relative(w, i.src[0].reg))); }},
    {"s_movreld_b32", [](Wave& w, const Inst& i) { w.s[relative(w, i.dst)] = read_s32(w, i.src[0]); }},
    {"s_movreld_b64", [](Wave& w, const Inst& i) { w.set_s64(relative(w, i.dst), read_s64(w, i.src[0])); }},
    SAVEEXEC("s_and_saveexec_b64", a & e), SAVEEXEC("s_or_saveexec_b64", a | e), SAVEEXEC("s_xor_saveexec_b64", a ^ e),
    SAVEEXEC("s_andn2_saveexec_b64", a & ~e), SAVEEXEC("s_orn2_saveexec_b64", a | ~e),
    SAVEEXEC("s_nand_saveexec_b64", ~(a & e)), SAVEEXEC("s_nor_saveexec_b64", ~(a | e)),
    SAVEEXEC("s_xnor_saveexec_b64", ~(a ^ e)), SAVEEXEC("s_andn1_saveexec_b64", ~a & e),
    SAVEEXEC("s_orn1_saveexec_b64", ~a | e), WREXEC("s_andn1_wrexec_b64", ~a & e), WREXEC("s_andn2_wrexec_b64", a & ~e),
    // SOPC
    COMPARE("s_cmp_eq_i32", read_s32, i32, a == b), COMPARE("s_cmp_lg_i32", read_s32, i32, a != b),
    COMPARE("s_cmp_gt_i32", read_s32, i32, a > b), COMPARE("s_cmp_ge_i32", read_s32, i32, a >= b),
    COMPARE("s_cmp_lt_i32", read_s32, i32, a < b), COMPARE("s_cmp_le_i32", read_s32, i32, a <= b),
    COMPARE("s_cmp_eq_u32", read_s32, u32, a == b), COMPARE("s_cmp_lg_u32", read_s32, u32, a != b),
    COMPARE("s_cmp_gt_u32", read_s32, u32, a > b), COMPARE("s_cmp_ge_u32", read_s32, u32, a >= b),
    COMPARE("s_cmp_lt_u32", read_s32, u32, a < b), COMPARE("s_cmp_le_u32", read_s32, u32, a <= b),
    COMPARE("s_cmp_eq_u64", read_s64, u64, a == b), COMPARE("s_cmp_lg_u64", read_s64, u64, a != b),
    COMPARE("s_bitcmp0_b32", read_s32, u32, (a >> (b & 31u) & 1u) == 0),
    COMPARE("s_bitcmp1_b32", read_s32, u32, (a >> (b & 31u) & 1u) == 1),
    {"s_bitcmp0_b64", [](Wave& w, const Inst& i) {
       w.scc = (read_s64(w, i.src[0]) >> (read_s32(w, i.src[1]) & 63u) & 1u) == 0;
     }},
    {"s_bitcmp1_b64", [](Wave& w, const Inst& i) {
       w.scc = (read_s64(w, i.src[0]) >> (read_s32(w, i.src[1]) & 63u) & 1u) == 1;
     }},
    // SOPK
    {"s_movk_i32", [](Wave& w, const Inst& i) { w.s[i.dst] = static_cast<u32>(i.imm); }},
    {"s_cmovk_i32", [](Wave& w, const Inst& i) { if (w.scc) w.s[i.dst] = static_cast<u32>(i.imm); }},
    COMPAREK("s_cmpk_eq_i32", i32, i32, a == b), COMPAREK("s_cmpk_lg_i32", i32, i32, a != b),
    COMPAREK("s_cmpk_gt_i32", i32, i32, a > b), COMPAREK("s_cmpk_ge_i32", i32, i32, a >= b),
    COMPAREK("s_cmpk_lt_i32", i32, i32, a < b), COMPAREK("s_cmpk_le_i32", i32, i32, a <= b),
    COMPAREK("s_cmpk_eq_u32", u32, u16, a == b), COMPAREK("s_cmpk_lg_u32", u32, u16, a != b),
    COMPAREK("s_cmpk_gt_u32", u32, u16, a > b), COMPAREK("s_cmpk_ge_u32", u32, u16, a >= b),
    COMPAREK("s_cmpk_lt_u32", u32, u16, a < b), COMPAREK("s_cmpk_le_u32", u32, u16, a <= b),
    {"s_addk_i32", [](Wave& w, const Inst& i) {
       const u32 a = w.s[i.dst], b = static_cast<u32>(i.imm);
       w.s[i.dst] = a + b;
       w.scc = add_overflows(a, b, a + b);
     }},
    {"s_mulk_i32", [](Wave& w, const Inst& i) { w.s[i.dst] *= static_cast<u32>(i.imm); }})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
