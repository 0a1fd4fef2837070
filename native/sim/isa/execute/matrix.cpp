// The matrix cores: v_mfma_* and v_smfmac_* (CDNA2 and CDNA3 ISA documents, "Matrix Arithmetic
// Instructions"). EXEC has no part in a matrix operation. MI200's flush the denormals of f16 and bf16
// operations, in and out.
#include "sim/isa/lanes.h"
#include "sim/isa/matrix/multiply.h"
#include "sim/isa/matrix/sparse.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

using namespace matrix;

// The MAI format keeps CBSZ, ABID and BLGP where other VOP3P instructions have neg_hi, op_sel and neg.
Modifiers modifiers(const Inst& i) { return {i.neg_hi, i.op_sel | (i.op_sel_hi >> 2 & 1u) << 3, i.neg}; }

// B's registers as BLGP hands them to the lanes.
const u32* with_blgp(const u32* b, unsigned count, unsigned blgp, Reg* temp) {
  if (blgp == 0) [[likely]]
    return b;
  for (unsigned r = 0; r < count; ++r)
    for (int l = 0; l < 64; ++l) temp[r].lane[l] = b[r * kLanes + static_cast<unsigned>(blgp_lane(blgp, l))];
  return temp[0].lane;
}

// Makes `d` hold C: copied from src2's registers, or filled with its constant.
u32* start(Wave& w, const Inst& i, unsigned registers, bool pairs) {
  Reg* d = &w.v[i.dst];
  const Operand& c = i.src[2];
  if (c.kind == Operand::Kind::vgpr) {
    if (c.reg != i.dst) std::memmove(d, &w.v[c.reg], registers * sizeof(Reg));
    return d->lane;
  }
  for (unsigned r = 0; r < registers; ++r) {
    const u64 value = pairs ? const64(c) : c.value;
    const u32 part = pairs && (r & 1) ? static_cast<u32>(value >> 32) : static_cast<u32>(value);
    for (u32& lane : d[r].lane) lane = part;
  }
  return d->lane;
}

template <class Kind>
concept FlushedOnCdna2 = requires { Kind::kLeastNormal; };

void flush_f32(u32* values, unsigned registers) {
  for (unsigned n = 0; n < registers * kLanes; ++n)
    values[n] = (values[n] & 0x7F800000) == 0 ? values[n] & 0x80000000 : values[n];
}

template <class KindA, class KindB, int M, int N, int K, int Blocks>
void mfma(Wave& w, const Inst& i) {
  using A = MatrixOperand<KindA, M, K, Blocks>;
  using B = MatrixOperand<KindB, N, K, Blocks>;
  constexpr unsigned kRegisters = M * N * Blocks / 64;
  const Modifiers m = modifiers(i);
  A a;
  B b;
  Reg temp[B::kRegisters];
  a.load(w.v[i.src[0].reg].lane);
  b.load(with_blgp(w.v[i.src[1].reg].lane, B::kRegisters, m.blgp, temp));
  u32* d = start(w, i, kRegisters, false);
  if constexpr (FlushedOnCdna2<KindA>) {
    if (i.arch == Arch::gfx90a) {
      a.flush_below(KindA::kLeastNormal);
      b.flush_below(KindB::kLeastNormal);
      flush_f32(d, kRegisters);
      accumulate<KindA, KindB, M, N, K, Blocks>(a, b, d, m);
      flush_f32(d, kRegisters);
      return;
    }
  }
  accumulate<KindA, KindB, M, N, K, Blocks>(a, b, d, m);
}

// f64: BLGP holds sign changes of A, B and C instead (CDNA3; CDNA2 has neither).
template <int M, int N, int K, int Blocks>
void mfma_f64(Wave& w, const Inst& i) {
  MatrixOperand<F64, M, K, Blocks> a;
  MatrixOperand<F64, N, K, Blocks> b;
  a.load(w.v[i.src[0].reg].lane);
  b.load(w.v[i.src[1].reg].lane);
  if (i.neg & 1) a.negate();
  if (i.neg & 2) b.negate();
  constexpr unsigned kRegisters = M * N * Blocks / 64 * 2;
  u32* d = start(w, i, kRegisters, true);
  if (i.neg & 4)
    for (unsigned r = 1; r < kRegisters; r += 2)
      for (unsigned l = 0; l < kLanes; ++l) d[r * kLanes + l] ^= 0x80000000;
  accumulate_f64<M, N, K, Blocks>(a, b, d);
}

// The index register is src2; D is also what is added to.
template <class KindA, class KindB, int M, int N, int K>
void smfmac(Wave& w, const Inst& i) {
  MatrixOperand<KindA, M, K / 2, 1> a;
  MatrixOperand<KindB, N, K, 1> b;
  a.load(w.v[i.src[0].reg].lane);
  b.load(w.v[i.src[1].reg].lane);
  Reg t;
  accumulate_sparse<KindA, KindB, M, N, K>(a, b, lanes32(w, i.src[2], t), w.v[i.dst].lane, modifiers(i));
}

// Inline constants of src2 are of the type of C, whatever the type in the mnemonic's end.
template <Handler F>
Handler bind_matrix(Inst& i) {
  if (i.src[0].kind != Operand::Kind::vgpr || i.src[1].kind != Operand::Kind::vgpr) return nullptr;
  Operand& c = i.src[2];
  if (c.kind != Operand::Kind::vgpr && c.kind != Operand::Kind::constant) return nullptr;
  const bool f64 = std::strncmp(i.opcode->mnemonic, "v_mfma_f64", 10) == 0;
  if (c.kind == Operand::Kind::constant && c.reg >= 240 && !f64) {
    constexpr float kInline[] = {0.5F, -0.5F, 1.0F, -1.0F, 2.0F, -2.0F, 4.0F, -4.0F, 0.15915494F};
    c.value = as_u32(kInline[c.reg - 240]);
    c.extend = Operand::Extend::zero;
  }
  if (f64 && i.arch == Arch::gfx90a && (i.neg | i.neg_hi | i.op_sel) != 0) return nullptr;
  i.float_class = f64 ? FloatClass::f64_f16 : FloatClass::f32;
  return F;
}

#define MFMA(name, a, b, m, n, k, blocks) {"v_mfma_" name, nullptr, bind_matrix<mfma<a, b, m, n, k, blocks>>}
#define SMFMAC(name, a, b, m, n, k) {"v_smfmac_" name, nullptr, bind_matrix<smfmac<a, b, m, n, k>>}

}  // namespace

KERNCAP_SIM_FAMILY(
    matrix, MFMA("f32_32x32x1_2b_f32", F32, F32, 32, 32, 1, 2),
    MFMA("f32_16x16x1_4b_f32", F32, F32, 16, 16, 1, 4), MFMA("f32_4x4x1_16b_f32", F32, F32, 4, 4, 1, 16),
    MFMA("f32_32x32x2_f32", F32, F32, 32, 32, 2, 1), MFMA("f32_16x16x4_f32", F32, F32, 16, 16, 4, 1),
    MFMA("f32_32x32x4_xf32", Xf32, Xf32, 32, 32, 4, 1), MFMA("f32_16x16x8_xf32", Xf32, Xf32, 16, 16, 8, 1),
    MFMA("f32_32x32x4_2b_f16", F16, F16, 32, 32, 4, 2), MFMA("f32_16x16x4_4b_f16", F16, F16, 16, 16, 4, 4),
    MFMA("f32_4x4x4_16b_f16", F16, F16, 4, 4, 4, 16), MFMA("f32_32x32x8_f16", F16, F16, 32, 32, 8, 1),
    MFMA("f32_16x16x16_f16", F16, F16, 16, 16, 16, 1), MFMA("f32_32x32x4_2b_bf16", Bf16, Bf16, 32, 32, 4, 2),
    MFMA("f32_16x16x4_4b_bf16", Bf16, Bf16, 16, 16, 4, 4),
    MFMA("f32_4x4x4_16b_bf16", Bf16, Bf16, 4, 4, 4, 16), MFMA("f32_32x32x8_bf16", Bf16, Bf16, 32, 32, 8, 1),
    MFMA("f32_16x16x16_bf16", Bf16, Bf16, 16, 16, 16, 1), MFMA("i32_32x32x4_2b_i8", I8, I8, 32, 32, 4, 2),
    MFMA("i32_16x16x4_4b_i8", I8, I8, 16, 16, 4, 4), MFMA("i32_4x4x4_16b_i8", I8, I8, 4, 4, 4, 16),
    MFMA("i32_32x32x16_i8", I8, I8, 32, 32, 16, 1), MFMA("i32_16x16x32_i8", I8, I8, 16, 16, 32, 1),
    MFMA("f32_32x32x16_fp8_fp8", Fp8, Fp8, 32, 32, 16, 1),
    MFMA("f32_32x32x16_fp8_bf8", Fp8, Bf8, 32, 32, 16, 1),
    MFMA("f32_32x32x16_bf8_fp8", Bf8, Fp8, 32, 32, 16, 1),
    MFMA("f32_32x32x16_bf8_bf8", Bf8, Bf8, 32, 32, 16, 1),
    MFMA("f32_16x16x32_fp8_fp8", Fp8, Fp8, 16, 16, 32, 1),
    MFMA("f32_16x16x32_fp8_bf8", Fp8, Bf8, 16, 16, 32, 1),
    MFMA("f32_16x16x32_bf8_fp8", Bf8, Fp8, 16, 16, 32, 1),
    MFMA("f32_16x16x32_bf8_bf8", Bf8, Bf8, 16, 16, 32, 1),
    {"v_mfma_f64_16x16x4_f64", nullptr, bind_matrix<mfma_f64<16, 16, 4, 1>>},
    {"v_mfma_f64_4x4x4_4b_f64", nullptr, bind_matrix<mfma_f64<4, 4, 4, 4>>},
    // As gfx90a names them.
    MFMA("f32_32x32x1f32", F32, F32, 32, 32, 1, 2), MFMA("f32_16x16x1f32", F32, F32, 16, 16, 1, 4),
    MFMA("f32_4x4x1f32", F32, F32, 4, 4, 1, 16), MFMA("f32_32x32x2f32", F32, F32, 32, 32, 2, 1),
    MFMA("f32_16x16x4f32", F32, F32, 16, 16, 4, 1), MFMA("f32_32x32x4f16", F16, F16, 32, 32, 4, 2),
    MFMA("f32_16x16x4f16", F16, F16, 16, 16, 4, 4), MFMA("f32_4x4x4f16", F16, F16, 4, 4, 4, 16),
    MFMA("f32_32x32x8f16", F16, F16, 32, 32, 8, 1), MFMA("f32_16x16x16f16", F16, F16, 16, 16, 16, 1),
    MFMA("f32_32x32x2bf16", Bf16, Bf16, 32, 32, 2, 2), MFMA("f32_16x16x2bf16", Bf16, Bf16, 16, 16, 2, 4),
    MFMA("f32_4x4x2bf16", Bf16, Bf16, 4, 4, 2, 16), MFMA("f32_32x32x4bf16", Bf16, Bf16, 32, 32, 4, 1),
    MFMA("f32_16x16x8bf16", Bf16, Bf16, 16, 16, 8, 1), MFMA("f32_32x32x4bf16_1k", Bf16, Bf16, 32, 32, 4, 2),
    MFMA("f32_16x16x4bf16_1k", Bf16, Bf16, 16, 16, 4, 4), MFMA("f32_4x4x4bf16_1k", Bf16, Bf16, 4, 4, 4, 16),
    MFMA("f32_32x32x8bf16_1k", Bf16, Bf16, 32, 32, 8, 1),
    MFMA("f32_16x16x16bf16_1k", Bf16, Bf16, 16, 16, 16, 1), MFMA("i32_32x32x4i8", I8, I8, 32, 32, 4, 2),
    MFMA("i32_16x16x4i8", I8, I8, 16, 16, 4, 4), MFMA("i32_4x4x4i8", I8, I8, 4, 4, 4, 16),
    MFMA("i32_32x32x8i8", I8, I8, 32, 32, 8, 1), MFMA("i32_16x16x16i8", I8, I8, 16, 16, 16, 1),
    {"v_mfma_f64_16x16x4f64", nullptr, bind_matrix<mfma_f64<16, 16, 4, 1>>},
    {"v_mfma_f64_4x4x4f64", nullptr, bind_matrix<mfma_f64<4, 4, 4, 4>>},
    SMFMAC("f32_16x16x32_f16", F16, F16, 16, 16, 32), SMFMAC("f32_32x32x16_f16", F16, F16, 32, 32, 16),
    SMFMAC("f32_16x16x32_bf16", Bf16, Bf16, 16, 16, 32), SMFMAC("f32_32x32x16_bf16", Bf16, Bf16, 32, 32, 16),
    SMFMAC("i32_16x16x64_i8", I8, I8, 16, 16, 64), SMFMAC("i32_32x32x32_i8", I8, I8, 32, 32, 32),
    SMFMAC("f32_16x16x64_fp8_fp8", Fp8, Fp8, 16, 16, 64),
    SMFMAC("f32_16x16x64_fp8_bf8", Fp8, Bf8, 16, 16, 64),
    SMFMAC("f32_16x16x64_bf8_fp8", Bf8, Fp8, 16, 16, 64),
    SMFMAC("f32_16x16x64_bf8_bf8", Bf8, Bf8, 16, 16, 64),
    SMFMAC("f32_32x32x32_fp8_fp8", Fp8, Fp8, 32, 32, 32),
    SMFMAC("f32_32x32x32_fp8_bf8", Fp8, Bf8, 32, 32, 32),
    SMFMAC("f32_32x32x32_bf8_fp8", Bf8, Fp8, 32, 32, 32),
    SMFMAC("f32_32x32x32_bf8_bf8", Bf8, Bf8, 32, 32, 32))

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
