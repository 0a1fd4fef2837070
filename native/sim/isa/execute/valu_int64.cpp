// 64-bit integer operations of the vector ALU.
#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

// Shifts: the amount is src0, a 32-bit operand.
template <class F>
void shift64(Wave& w, const Inst& i, F f) {
  Reg t;
  Temp64 t1;
  const u32* a = lanes32(w, i.src[0], t);
  const Lanes64 b = lanes64(w, i.src[1], t1);
  write64(w, i.dst, [=](unsigned l) { return f(a[l] & 63u, b[l]); });
}

void lshl_add_u64(Wave& w, const Inst& i) {
  Temp64 t0, t2;
  Reg t1;
  const Lanes64 a = lanes64(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  const Lanes64 c = lanes64(w, i.src[2], t2);
  // The shift is 0 to 4; larger amounts shift by 0.
  write64(w, i.dst, [=](unsigned l) { return (a[l] << ((b[l] & 7u) <= 4 ? b[l] & 7u : 0)) + c[l]; });
}

// 32 x 32 + 64; the carry out of bit 63 goes to sdst.
template <bool Signed>
void mad64(Wave& w, const Inst& i) {
  Reg t0, t1;
  Temp64 t2;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  const Lanes64 c = lanes64(w, i.src[2], t2);
  const auto product = [=](unsigned l) {
    return Signed ? static_cast<u64>(static_cast<i64>(static_cast<i32>(a[l])) * static_cast<i32>(b[l]))
                  : static_cast<u64>(a[l]) * b[l];
  };
  const u64 carry = ballot(w, [=](unsigned l) {
    const u64 p = product(l), sum = p + c[l];
    if constexpr (!Signed) return sum < p;
    return (((p ^ sum) & (c[l] ^ sum)) >> 63) != 0;
  });
  write64(w, i.dst, [=](unsigned l) { return product(l) + c[l]; });
  w.set_s64(i.sdst, carry);
}

// Sums of absolute differences of 4 bytes at 4 byte offsets of a 64-bit source.
u32 sad4(u32 a, u32 b, bool masked) {
  u32 sum = 0;
  for (unsigned n = 0; n < 32; n += 8) {
    const i32 x = static_cast<i32>(a >> n & 0xFFu), y = static_cast<i32>(b >> n & 0xFFu);
    if (!masked || y != 0) sum += static_cast<u32>(x < y ? y - x : x - y);
  }
  return sum;
}
template <bool Masked>
void qsad_pk_u16(Wave& w, const Inst& i) {
  Temp64 t0, t2;
  Reg t1;
  const Lanes64 a = lanes64(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  const Lanes64 c = lanes64(w, i.src[2], t2);
  write64(w, i.dst, [=](unsigned l) {
    u64 result = 0;
    for (unsigned n = 0; n < 4; ++n) {
      const u32 sum = sad4(static_cast<u32>(a[l] >> (8 * n)), b[l], Masked) +
                      static_cast<u32>(c[l] >> (16 * n) & 0xFFFFu);
      result |= static_cast<u64>(sum & 0xFFFFu) << (16 * n);
    }
    return result;
  });
}
void mqsad_u32(Wave& w, const Inst& i) {
  Temp64 t0;
  Reg t1;
  const Lanes64 a = lanes64(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  u32 sum[4][kLanes];
  for (unsigned n = 0; n < 4; ++n) {
    Reg t2;
    Operand part = i.src[2];
    if (part.kind == Operand::Kind::vgpr) part.reg = static_cast<u16>(part.reg + n);
    const u32* c = lanes32(w, part, t2);
    for (unsigned l = 0; l < kLanes; ++l)
      sum[n][l] = sad4(static_cast<u32>(a[l] >> (8 * n)), b[l], true) + c[l];
  }
  for (unsigned n = 0; n < 4; ++n) write32(w, i.dst + n, [&](unsigned l) { return sum[n][l]; });
}

}  // namespace

KERNCAP_SIM_FAMILY(valu_int64,
                   {"v_lshlrev_b64",
                    [](Wave& w, const Inst& i) { shift64(w, i, [](u32 n, u64 x) { return x << n; }); }},
                   {"v_lshrrev_b64",
                    [](Wave& w, const Inst& i) { shift64(w, i, [](u32 n, u64 x) { return x >> n; }); }},
                   {"v_ashrrev_i64",
                    [](Wave& w, const Inst& i) {
                      shift64(w, i, [](u32 n, u64 x) { return static_cast<u64>(static_cast<i64>(x) >> n); });
                    }},
                   {"v_lshl_add_u64", lshl_add_u64}, {"v_mad_u64_u32", mad64<false>},
                   {"v_mad_i64_i32", mad64<true>}, {"v_qsad_pk_u16_u8", qsad_pk_u16<false>},
                   {"v_mqsad_pk_u16_u8", qsad_pk_u16<true>}, {"v_mqsad_u32_u8", mqsad_u32})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
