// What handlers are written with: operands as 64-lane arrays, EXEC-masked results, modifiers.
// Everything is a template or static, in the namespace of the level it is compiled for.
#pragma once

#include <bit>
#include <cmath>

#include "sim/isa/execute.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

static inline float as_f32(u32 x) { return std::bit_cast<float>(x); }
static inline u32 as_u32(float x) { return std::bit_cast<u32>(x); }
static inline double as_f64(u64 x) { return std::bit_cast<double>(x); }
static inline u64 as_u64(double x) { return std::bit_cast<u64>(x); }

// ---- Scalars

static inline u64 special_value(const Wave& w, unsigned code) {
  switch (code) {
    case 235:
      return kSharedAperture;
    case 236:
      return kSharedAperture + kApertureSize - 1;
    case 237:
      return kPrivateAperture;
    case 238:
      return kPrivateAperture + kApertureSize - 1;
    case 251:
      return w.vcc() == 0;
    case 252:
      return w.exec() == 0;
    case 253:
      return w.scc;
    default:
      return 0;
  }
}

static inline u32 read_s32(const Wave& w, const Operand& o) {
  if (o.kind == Operand::Kind::sgpr) return w.s[o.reg];
  if (o.kind == Operand::Kind::constant) return o.value;
  return static_cast<u32>(special_value(w, o.reg));
}

static inline u64 const64(const Operand& o) {
  switch (o.extend) {
    case Operand::Extend::zero:
      return o.value;
    case Operand::Extend::sign:
      return static_cast<u64>(static_cast<i64>(static_cast<i32>(o.value)));
    case Operand::Extend::high:
      return static_cast<u64>(o.value) << 32;
    default:
      return 0x3FC45F306DC9C882ull;  // 1/(2 pi)
  }
}

static inline u64 read_s64(const Wave& w, const Operand& o) {
  if (o.kind == Operand::Kind::sgpr) return w.s64(o.reg);
  if (o.kind == Operand::Kind::constant) return const64(o);
  return special_value(w, o.reg);
}

// ---- Vector sources

// The 64 lanes of a 32-bit source; `temp` is filled where they are not a register.
static inline const u32* lanes32(Wave& w, const Operand& o, Reg& temp) {
  if (o.kind == Operand::Kind::vgpr) return w.v[o.reg].lane;
  const u32 value = read_s32(w, o);
  for (unsigned l = 0; l < kLanes; ++l) temp.lane[l] = value;
  return temp.lane;
}

// The same for 64-bit sources: low and high dwords.
struct Lanes64 {
  const u32* lo;
  const u32* hi;
  u64 operator[](unsigned l) const { return static_cast<u64>(hi[l]) << 32 | lo[l]; }
};
struct Temp64 {
  Reg lo, hi;
};
static inline Lanes64 lanes64(Wave& w, const Operand& o, Temp64& temp) {
  if (o.kind == Operand::Kind::vgpr) return {w.v[o.reg].lane, w.v[o.reg + 1].lane};
  const u64 value = read_s64(w, o);
  for (unsigned l = 0; l < kLanes; ++l) {
    temp.lo.lane[l] = static_cast<u32>(value);
    temp.hi.lane[l] = static_cast<u32>(value >> 32);
  }
  return {temp.lo.lane, temp.hi.lane};
}

// ---- Vector results

// dst = f(lane), for the lanes in EXEC. `f` is evaluated for all lanes and must have no effect.
template <class F>
static inline void write32(Wave& w, unsigned dst, F f) {
  u32* d = w.v[dst].lane;
  if (w.full()) [[likely]] {
#pragma GCC ivdep
    for (unsigned l = 0; l < kLanes; ++l) d[l] = f(l);
  } else {
    const u32* m = w.mask();
#pragma GCC ivdep
    for (unsigned l = 0; l < kLanes; ++l) {
      const u32 r = f(l);
      d[l] = (r & m[l]) | (d[l] & ~m[l]);
    }
  }
}

template <class F>
static inline void write64(Wave& w, unsigned dst, F f) {
  u32* lo = w.v[dst].lane;
  u32* hi = w.v[dst + 1].lane;
  // Sources may overlap the pair by one register, so the result is complete before it is stored.
  alignas(64) u64 result[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) result[l] = f(l);
  if (w.full()) [[likely]] {
    for (unsigned l = 0; l < kLanes; ++l) {
      lo[l] = static_cast<u32>(result[l]);
      hi[l] = static_cast<u32>(result[l] >> 32);
    }
  } else {
    const u32* m = w.mask();
    for (unsigned l = 0; l < kLanes; ++l) {
      lo[l] = (static_cast<u32>(result[l]) & m[l]) | (lo[l] & ~m[l]);
      hi[l] = (static_cast<u32>(result[l] >> 32) & m[l]) | (hi[l] & ~m[l]);
    }
  }
}

// A 64-bit mask of a predicate over the lanes in EXEC.
template <class F>
static inline u64 ballot(const Wave& w, F f) {
  alignas(64) u8 bit[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) bit[l] = f(l) ? 1 : 0;
  u64 result = 0;
  for (unsigned b = 0; b < 8; ++b) {
    u64 eight;
    std::memcpy(&eight, bit + 8 * b, 8);
    result |= (eight * 0x0102040810204080ull >> 56) << (8 * b);
  }
  return result & w.exec();
}

// ---- 32-bit operations on raw bits

template <class F>
static inline void map1(Wave& w, const Inst& i, F f) {
  Reg t;
  const u32* a = lanes32(w, i.src[0], t);
  write32(w, i.dst, [=](unsigned l) { return f(a[l]); });
}
template <class F>
static inline void map2(Wave& w, const Inst& i, F f) {
  Reg t0, t1;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  write32(w, i.dst, [=](unsigned l) { return f(a[l], b[l]); });
}
template <class F>
static inline void map3(Wave& w, const Inst& i, F f) {
  Reg t0, t1, t2;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  const u32* c = lanes32(w, i.src[2], t2);
  write32(w, i.dst, [=](unsigned l) { return f(a[l], b[l], c[l]); });
}

// ---- Input and output modifiers of floating-point operations

// abs, then neg, on the sign bit of source n.
struct SignBits {
  u32 clear, flip;
  u32 operator()(u32 x) const { return (x & ~clear) ^ flip; }
};
static inline SignBits sign_bits(const Inst& i, unsigned n) {
  return {(i.abs >> n & 1u) << 31, (i.neg >> n & 1u) << 31};
}
static inline u64 modify64(const Inst& i, unsigned n, u64 x) {
  x &= ~(static_cast<u64>(i.abs >> n & 1u) << 63);
  return x ^ static_cast<u64>(i.neg >> n & 1u) << 63;
}

// omod (x2, x4, /2), then clamp to 0..1. With DX10_CLAMP, which the AMD HSA ABI sets, NaN clamps to 0.
static inline float output32(const Inst& i, float x) {
  if (i.omod == 1) x *= 2.0F;
  if (i.omod == 2) x *= 4.0F;
  if (i.omod == 3) x *= 0.5F;
  if (i.has(Inst::clamp)) x = x > 0.0F ? (x < 1.0F ? x : 1.0F) : 0.0F;
  return x;
}
static inline double output64(const Inst& i, double x) {
  if (i.omod == 1) x *= 2.0;
  if (i.omod == 2) x *= 4.0;
  if (i.omod == 3) x *= 0.5;
  if (i.has(Inst::clamp)) x = x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0;
  return x;
}

// Handlers of f32 operations of 1, 2 and 3 sources: Op::f(float...) -> float, plain and with modifiers.
template <class Op, unsigned N>
static void f32_plain(Wave& w, const Inst& i) {
  if constexpr (N == 1) map1(w, i, [](u32 a) { return as_u32(Op::f(as_f32(a))); });
  if constexpr (N == 2) map2(w, i, [](u32 a, u32 b) { return as_u32(Op::f(as_f32(a), as_f32(b))); });
  if constexpr (N == 3)
    map3(w, i, [](u32 a, u32 b, u32 c) { return as_u32(Op::f(as_f32(a), as_f32(b), as_f32(c))); });
}
template <class Op, unsigned N>
static void f32_modified(Wave& w, const Inst& i) {
  const SignBits s0 = sign_bits(i, 0), s1 = sign_bits(i, 1), s2 = sign_bits(i, 2);
  const auto out = [&i](float x) { return as_u32(output32(i, x)); };
  if constexpr (N == 1) map1(w, i, [=](u32 a) { return out(Op::f(as_f32(s0(a)))); });
  if constexpr (N == 2) map2(w, i, [=](u32 a, u32 b) { return out(Op::f(as_f32(s0(a)), as_f32(s1(b)))); });
  if constexpr (N == 3)
    map3(w, i, [=](u32 a, u32 b, u32 c) { return out(Op::f(as_f32(s0(a)), as_f32(s1(b)), as_f32(s2(c)))); });
}
template <class Op, unsigned N>
static Handler bind_f32(Inst& i) {
  i.float_class = FloatClass::f32;
  return i.modified() ? f32_modified<Op, N> : f32_plain<Op, N>;
}

// The same for f64: Op::f(double...) -> double.
template <class Op, unsigned N>
static void f64_op(Wave& w, const Inst& i) {
  Temp64 t[N];
  Lanes64 s[N];
  for (unsigned n = 0; n < N; ++n) s[n] = lanes64(w, i.src[n], t[n]);
  const auto in = [&](unsigned n, unsigned l) { return as_f64(modify64(i, n, s[n][l])); };
  write64(w, i.dst, [&](unsigned l) {
    if constexpr (N == 1) return as_u64(output64(i, Op::f(in(0, l))));
    if constexpr (N == 2) return as_u64(output64(i, Op::f(in(0, l), in(1, l))));
    if constexpr (N == 3) return as_u64(output64(i, Op::f(in(0, l), in(1, l), in(2, l))));
  });
}
template <class Op, unsigned N>
static Handler bind_f64(Inst& i) {
  i.float_class = FloatClass::f64_f16;
  return f64_op<Op, N>;
}

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
