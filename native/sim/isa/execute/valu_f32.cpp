// f32 arithmetic of the vector ALU, and the conversions between f32 and integers.
#include "sim/isa/float_ops.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

#define OP1(type, expr)                               \
  struct type {                                       \
    static inline float f(float a) { return (expr); } \
  }
#define OP2(type, expr)                                        \
  struct type {                                                \
    static inline float f(float a, float b) { return (expr); } \
  }
#define OP3(type, expr)                                                 \
  struct type {                                                         \
    static inline float f(float a, float b, float c) { return (expr); } \
  }

OP2(Add, a + b);
OP2(Sub, a - b);
OP2(SubRev, b - a);
OP2(Mul, a* b);
// Legacy: 0 times anything is 0.
OP2(MulLegacy, a == 0.0F || b == 0.0F ? 0.0F : a * b);
OP2(Min, min32(a, b));
OP2(Max, max32(a, b));
OP3(Fma, fma32(a, b, c));
OP3(Min3, min32(min32(a, b), c));
OP3(Max3, max32(max32(a, b), c));
OP3(Med3, med32(a, b, c));
OP1(Trunc, __builtin_truncf(a));
OP1(Ceil, __builtin_ceilf(a));
OP1(Floor, __builtin_floorf(a));
OP1(Rndne, __builtin_rintf(a));
// a - floor(a), below 1.
OP1(Fract, a - a != 0.0F ? a - a : __builtin_fminf(a - __builtin_floorf(a), 0x1.fffffep-1F));

struct FrexpMantissa {
  static float f(float a) {
    int e = 0;
    return a - a != 0.0F ? a : std::frexp(a, &e);
  }
};

// Integer results: abs and neg apply to the source.
template <class F>
void convert_from_f32(Wave& w, const Inst& i, F f) {
  const SignBits s = sign_bits(i, 0);
  map1(w, i, [=](u32 a) { return f(as_f32(s(a))); });
}
#define FROM(name, expr)                                                            \
  {name, [](Wave& w, const Inst& i) {                                               \
     convert_from_f32(w, i, [](float a) -> u32 { return static_cast<u32>(expr); }); \
   }}
// f32 results of integer sources: the output modifiers apply.
#define TO(name, expr)                                                                         \
  {name, [](Wave& w, const Inst& i) {                                                          \
     map1(w, i, [&i](u32 a) -> u32 { return as_u32(output32(i, static_cast<float>(expr))); }); \
   }}

u32 frexp_exponent(float a) {
  int e = 0;
  if (a - a != 0.0F || a == 0.0F) return 0;
  std::frexp(a, &e);
  return static_cast<u32>(e);
}
// Round half up: floor(a + 0.5), in double so that the sum is exact.
double half_up(float a) { return __builtin_floor(static_cast<double>(a) + 0.5); }

void ldexp_f32(Wave& w, const Inst& i) {
  const SignBits s = sign_bits(i, 0);
  map2(w, i, [=, &i](u32 a, u32 b) {
    const i32 n = static_cast<i32>(b);
    return as_u32(output32(i, std::ldexp(as_f32(s(a)), n > 1000 ? 1000 : n < -1000 ? -1000 : n)));
  });
}

// v_cvt_pk_u8_f32: the byte of src2 that src1 names is replaced.
void cvt_pk_u8(Wave& w, const Inst& i) {
  const SignBits s = sign_bits(i, 0);
  map3(w, i, [=](u32 a, u32 b, u32 c) {
    const double x = __builtin_rint(static_cast<double>(as_f32(s(a))));
    const u32 byte = x != x || x <= 0.0 ? 0u : x >= 255.0 ? 255u : static_cast<u32>(x);
    const u32 shift = 8 * (b & 3u);
    return (c & ~(0xFFu << shift)) | byte << shift;
  });
}

// ---- Cube maps (ISA document, V_CUBE*)
struct Cube {
  float id, sc, tc, ma;
};
Cube cube(float x, float y, float z) {
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  if (az >= ax && az >= ay) return {z < 0.0F ? 5.0F : 4.0F, z < 0.0F ? -x : x, -y, 2.0F * z};
  if (ay >= ax) return {y < 0.0F ? 3.0F : 2.0F, x, y < 0.0F ? -z : z, 2.0F * y};
  return {x < 0.0F ? 1.0F : 0.0F, x < 0.0F ? z : -z, -y, 2.0F * x};
}
OP3(CubeId, cube(a, b, c).id);
OP3(CubeSc, cube(a, b, c).sc);
OP3(CubeTc, cube(a, b, c).tc);
OP3(CubeMa, cube(a, b, c).ma);

}  // namespace

#define B1(name, op) {name, nullptr, bind_f32<op, 1>}
#define B2(name, op) {name, nullptr, bind_f32<op, 2>}
#define B3(name, op) {name, nullptr, bind_f32<op, 3>}

KERNCAP_SIM_FAMILY(valu_f32, B2("v_add_f32", Add), B2("v_sub_f32", Sub), B2("v_subrev_f32", SubRev),
                   B2("v_mul_f32", Mul), B2("v_mul_legacy_f32", MulLegacy), B2("v_min_f32", Min),
                   B2("v_max_f32", Max), B3("v_fma_f32", Fma), B3("v_fmac_f32", Fma), B3("v_fmamk_f32", Fma),
                   B3("v_fmaak_f32", Fma), B3("v_min3_f32", Min3), B3("v_max3_f32", Max3),
                   B3("v_med3_f32", Med3), B1("v_trunc_f32", Trunc), B1("v_ceil_f32", Ceil),
                   B1("v_floor_f32", Floor), B1("v_rndne_f32", Rndne), B1("v_fract_f32", Fract),
                   B1("v_frexp_mant_f32", FrexpMantissa), FROM("v_frexp_exp_i32_f32", frexp_exponent(a)),
                   {"v_ldexp_f32", ldexp_f32}, FROM("v_cvt_i32_f32", to_i32(a)),
                   FROM("v_cvt_u32_f32", to_u32(a)), FROM("v_cvt_rpi_i32_f32", to_i32(half_up(a))),
                   FROM("v_cvt_flr_i32_f32", to_i32(__builtin_floor(static_cast<double>(a)))),
                   TO("v_cvt_f32_i32", static_cast<i32>(a)), TO("v_cvt_f32_u32", a),
                   TO("v_cvt_f32_ubyte0", a & 0xFFu), TO("v_cvt_f32_ubyte1", a >> 8 & 0xFFu),
                   TO("v_cvt_f32_ubyte2", a >> 16 & 0xFFu), TO("v_cvt_f32_ubyte3", a >> 24),
                   TO("v_cvt_off_f32_i4", static_cast<float>(static_cast<i32>(a << 28) >> 28) * 0.0625F),
                   {"v_cvt_pk_u8_f32", cvt_pk_u8}, B3("v_cubeid_f32", CubeId), B3("v_cubesc_f32", CubeSc),
                   B3("v_cubetc_f32", CubeTc), B3("v_cubema_f32", CubeMa))

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
