// Moves between lanes and registers: v_mov, v_cndmask, readlane and writelane, accumulation VGPRs, v_swap.
#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

void v_mov_b32(Wave& w, const Inst& i) {
  map1(w, i, [](u32 a) { return a; });
}

void v_mov_b64(Wave& w, const Inst& i) {
  Temp64 t;
  const Lanes64 a = lanes64(w, i.src[0], t);
  write64(w, i.dst, [=](unsigned l) { return a[l]; });
}

// The mask is an SGPR pair: VCC in VOP2, src2 in VOP3. abs and neg apply to the two values.
void v_cndmask_b32(Wave& w, const Inst& i) {
  const u64 mask = read_s64(w, i.src[2]);
  Reg t0, t1;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  const SignBits s0 = sign_bits(i, 0), s1 = sign_bits(i, 1);
  alignas(64) u32 choose[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) choose[l] = 0u - static_cast<u32>(mask >> l & 1u);
  write32(w, i.dst, [=, &choose](unsigned l) { return (s0(a[l]) & ~choose[l]) | (s1(b[l]) & choose[l]); });
}

u32 lane_value(Wave& w, const Operand& o, unsigned lane) {
  return o.kind == Operand::Kind::vgpr ? w.v[o.reg].lane[lane] : read_s32(w, o);
}

// With EXEC = 0 the first lane is lane 0.
void v_readfirstlane(Wave& w, const Inst& i) {
  const unsigned lane = w.exec() == 0 ? 0 : static_cast<unsigned>(std::countr_zero(w.exec()));
  w.s[i.dst] = lane_value(w, i.src[0], lane);
}
// Both ignore EXEC.
void v_readlane(Wave& w, const Inst& i) { w.s[i.dst] = lane_value(w, i.src[0], read_s32(w, i.src[1]) & 63u); }
void v_writelane(Wave& w, const Inst& i) {
  w.v[i.dst].lane[read_s32(w, i.src[1]) & 63u] = read_s32(w, i.src[0]);
}

void v_swap(Wave& w, const Inst& i) {
  const u32* m = w.mask();
  u32* a = w.v[i.dst].lane;
  u32* b = w.v[i.src[0].reg].lane;
  for (unsigned l = 0; l < kLanes; ++l) {
    const u32 x = (a[l] ^ b[l]) & m[l];
    a[l] ^= x;
    b[l] ^= x;
  }
}

void nothing(Wave& /*w*/, const Inst& /*i*/) {}

}  // namespace

KERNCAP_SIM_FAMILY(valu_move, {"v_mov_b32", v_mov_b32}, {"v_mov_b64", v_mov_b64},
                   {"v_cndmask_b32", v_cndmask_b32}, {"v_readfirstlane_b32", v_readfirstlane},
                   {"v_readlane_b32", v_readlane}, {"v_writelane_b32", v_writelane},
                   {"v_accvgpr_read_b32", v_mov_b32}, {"v_accvgpr_write_b32", v_mov_b32},
                   {"v_accvgpr_mov_b32", v_mov_b32}, {"v_swap_b32", v_swap}, {"v_nop", nothing},
                   {"v_clrexcp", nothing})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
