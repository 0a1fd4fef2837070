// Dot products of packed halves, bytes and nibbles, and the mixed-precision fused multiply-adds.
#include "sim/isa/float_ops.h"
#include "sim/isa/half.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

constexpr float kInline[] = {0.5F, -0.5F, 1.0F, -1.0F, 2.0F, -2.0F, 4.0F, -4.0F, 0.15915494F};

// An inline constant of an f32 source of an instruction whose name ends in f16.
void constant_as_f32(Operand& o) {
  if (o.kind == Operand::Kind::constant && o.reg >= 240 && o.reg <= 248)
    o.value = as_u32(kInline[o.reg - 240]);
}

// a.lo*b.lo + a.hi*b.hi + c. The products are exact, the sum of all three is rounded once to f64 and once to
// f32; the hardware's own intermediate precision is not documented. MI200's v_dot2 flushes denormals, in and
// out.
float flushed(float x, float normal) { return std::fabs(x) < normal ? std::copysign(0.0F, x) : x; }
template <bool Flush>
void dot2_f32_f16(Wave& w, const Inst& i) {
  Reg t[3];
  Floats lo[2], hi[2];
  for (unsigned n = 0; n < 2; ++n) {
    const u32* s = lanes32(w, i.src[n], t[n]);
    unpack_f16(s, (i.op_sel >> n & 1u) * 16, lo[n]);
    unpack_f16(s, (i.op_sel_hi >> n & 1u) * 16, hi[n]);
    modify_f16(lo[n], false, i.neg >> n & 1u);
    modify_f16(hi[n], false, i.neg_hi >> n & 1u);
  }
  const u32* c = lanes32(w, i.src[2], t[2]);
  const u32 flip = (i.neg >> 2 & 1u) << 31;
  if constexpr (Flush) {
    for (Floats* s : {&lo[0], &lo[1], &hi[0], &hi[1]})
      for (float& x : s->lane) x = flushed(x, 0x1p-14F);
    write32(w, i.dst, [&](unsigned l) {
      const double sum = static_cast<double>(lo[0].lane[l]) * static_cast<double>(lo[1].lane[l]) +
                         static_cast<double>(hi[0].lane[l]) * static_cast<double>(hi[1].lane[l]) +
                         static_cast<double>(flushed(as_f32(c[l] ^ flip), 0x1p-126F));
      return as_u32(output32(i, flushed(static_cast<float>(sum), 0x1p-126F)));
    });
    return;
  }
  write32(w, i.dst, [&](unsigned l) {
    const double sum = static_cast<double>(lo[0].lane[l]) * static_cast<double>(lo[1].lane[l]) +
                       static_cast<double>(hi[0].lane[l]) * static_cast<double>(hi[1].lane[l]) +
                       static_cast<double>(as_f32(c[l] ^ flip));
    return as_u32(output32(i, static_cast<float>(sum)));
  });
}
Handler bind_dot2_f32(Inst& i) {
  constant_as_f32(i.src[2]);
  i.float_class = FloatClass::f32;
  if (i.opcode->encoding != Encoding::VOP3P) {  // v_dot2c: no selection
    i.op_sel = 0;
    i.op_sel_hi = 3;
    i.neg_hi = i.neg;
  }
  return i.arch == Arch::gfx90a ? dot2_f32_f16<true> : dot2_f32_f16<false>;
}

// The sum of the products of `Bits`-wide fields and c; clamp saturates to 32 bits.
template <unsigned Bits, bool Signed>
void dot_int(Wave& w, const Inst& i) {
  Reg t[3];
  const u32* a = lanes32(w, i.src[0], t[0]);
  const u32* b = lanes32(w, i.src[1], t[1]);
  const u32* c = lanes32(w, i.src[2], t[2]);
  const bool clamp = i.has(Inst::clamp);
  write32(w, i.dst, [=](unsigned l) {
    constexpr unsigned kUp = 32 - Bits;
    if (Signed) {
      i64 sum = static_cast<i32>(c[l]);
      for (unsigned k = 0; k < 32; k += Bits)
        sum += static_cast<i64>(static_cast<i32>(a[l] << (kUp - k)) >> kUp) *
               (static_cast<i32>(b[l] << (kUp - k)) >> kUp);
      if (clamp) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
      return static_cast<u32>(sum);
    }
    u64 sum = c[l];
    for (unsigned k = 0; k < 32; k += Bits)
      sum += static_cast<u64>(a[l] << (kUp - k) >> kUp) * (b[l] << (kUp - k) >> kUp);
    if (clamp && sum > UINT32_MAX) sum = UINT32_MAX;
    return static_cast<u32>(sum);
  });
}

// v_fma_mix: OP_SEL_HI says that a source is f16, OP_SEL then which half; NEG_HI is the absolute value.
void mix(Wave& w, const Inst& i, Floats& result) {
  Floats s[3];
  for (unsigned n = 0; n < 3; ++n) {
    Reg t;
    const u32* raw = lanes32(w, i.src[n], t);
    if (i.op_sel_hi >> n & 1u)
      unpack_f16(raw, (i.op_sel >> n & 1u) * 16, s[n]);
    else
      std::memcpy(s[n].lane, raw, sizeof(s[n].lane));
    modify_f16(s[n], i.neg_hi >> n & 1u, i.neg >> n & 1u);
  }
  for (unsigned l = 0; l < kLanes; ++l) {
    const float x = fma32(s[0].lane[l], s[1].lane[l], s[2].lane[l]);
    result.lane[l] = i.has(Inst::clamp) ? output32(i, x) : x;
  }
}
void fma_mix_f32(Wave& w, const Inst& i) {
  Floats result;
  mix(w, i, result);
  write32(w, i.dst, [&](unsigned l) { return as_u32(result.lane[l]); });
}
template <unsigned Shift>
void fma_mix_f16(Wave& w, const Inst& i) {
  Floats result;
  Reg packed;
  mix(w, i, result);
  pack_f16(result, packed.lane);
  const u32* old = w.v[i.dst].lane;
  write32(w, i.dst, [&](unsigned l) { return (old[l] & ~(0xFFFFu << Shift)) | packed.lane[l] << Shift; });
}
template <Handler F>
Handler bind_mix(Inst& i) {
  i.float_class = FloatClass::f32;
  constexpr u32 kHalf[] = {0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000, 0xC000, 0x4400, 0xC400, 0x3118};
  for (unsigned n = 0; n < 3; ++n) {
    constant_as_f32(i.src[n]);
    if ((i.op_sel_hi >> n & 1u) && i.src[n].kind == Operand::Kind::constant && i.src[n].reg >= 240)
      i.src[n].value = kHalf[i.src[n].reg - 240];
  }
  return F;
}

}  // namespace

KERNCAP_SIM_FAMILY(valu_dot, {"v_dot2_f32_f16", nullptr, bind_dot2_f32},
                   {"v_dot2c_f32_f16", nullptr, bind_dot2_f32}, {"v_dot2_i32_i16", dot_int<16, true>},
                   {"v_dot2c_i32_i16", dot_int<16, true>}, {"v_dot2_u32_u16", dot_int<16, false>},
                   {"v_dot4_i32_i8", dot_int<8, true>}, {"v_dot4c_i32_i8", dot_int<8, true>},
                   {"v_dot4_u32_u8", dot_int<8, false>}, {"v_dot8_i32_i4", dot_int<4, true>},
                   {"v_dot8c_i32_i4", dot_int<4, true>}, {"v_dot8_u32_u4", dot_int<4, false>},
                   {"v_fma_mix_f32", nullptr, bind_mix<fma_mix_f32>},
                   {"v_fma_mixlo_f16", nullptr, bind_mix<fma_mix_f16<0>>},
                   {"v_fma_mixhi_f16", nullptr, bind_mix<fma_mix_f16<16>>})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
