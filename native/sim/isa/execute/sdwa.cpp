// SDWA: sources are a byte or a word of a register, and so is the destination (CDNA3 ISA document, "Sub-Dword
// Addressing"). Selected sources go to temporary registers, the ordinary handler runs, and its result is
// merged.
#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

constexpr unsigned kDword = 6;  // 0..3: bytes, 4 and 5: words
constexpr unsigned kPad = 0, kSext = 1, kPreserve = 2;

struct Part {
  unsigned shift, bits;
};
Part part(unsigned select) {
  return select < 4 ? Part{8 * select, 8} : select < kDword ? Part{16 * (select - 4), 16} : Part{0, 32};
}

void select_source(Wave& w, Inst& inner, unsigned n, unsigned select, bool sign_extend) {
  if (select >= kDword) return;
  Reg t;
  const u32* source = lanes32(w, inner.src[n], t);
  const Part p = part(select);
  const unsigned up = 32 - p.bits - p.shift, down = 32 - p.bits;
  u32* out = w.v[kTempVgpr + n].lane;
  if (sign_extend)
    for (unsigned l = 0; l < kLanes; ++l)
      out[l] = static_cast<u32>(static_cast<i32>(source[l] << up) >> down);
  else
    for (unsigned l = 0; l < kLanes; ++l) out[l] = source[l] << up >> down;
  inner.src[n].kind = Operand::Kind::vgpr;
  inner.src[n].reg = static_cast<u16>(kTempVgpr + n);
}

void sdwa(Wave& w, const Inst& i) {
  const u32 word = i.modifier_word;
  Inst inner = i;
  select_source(w, inner, 0, word >> 16 & 7u, word >> 19 & 1u);
  if (i.opcode->slot('1') != nullptr) select_source(w, inner, 1, word >> 24 & 7u, word >> 27 & 1u);
  const unsigned select = word >> 8 & 7u;
  if (i.opcode->encoding == Encoding::VOPC || select >= kDword) {
    i.inner(w, inner);
    return;
  }
  constexpr unsigned kResult = kTempVgpr + 2;
  inner.dst = kResult;
  i.inner(w, inner);
  const Part p = part(select);
  const u32 mask = ((1u << p.bits) - 1) << p.shift, unused = word >> 11 & 3u;
  const u32* value = w.v[kResult].lane;
  const u32* old = w.v[i.dst].lane;
  if (unused == kSext) {
    const unsigned up = 32 - p.bits, down = 32 - p.bits - p.shift;
    write32(w, i.dst, [=](unsigned l) {
      return static_cast<u32>(static_cast<i32>(value[l] << up) >> down) & ~((1u << p.shift) - 1);
    });
  } else if (unused == kPreserve) {
    write32(w, i.dst, [=](unsigned l) { return (value[l] << p.shift & mask) | (old[l] & ~mask); });
  } else {
    write32(w, i.dst, [=](unsigned l) { return value[l] << p.shift & mask; });
  }
}

Handler bind_sdwa(Inst& i) {
  const unsigned unused = i.modifier_word >> 11 & 3u, select = i.modifier_word >> 8 & 7u;
  const bool compare = i.opcode->encoding == Encoding::VOPC;
  if (!compare && (unused > kPreserve || select > kDword)) return nullptr;
  if (!compare && select < kDword && i.opcode->width('D') != 1) return nullptr;
  return sdwa;
}
static_assert(kPad == 0);

}  // namespace

KERNCAP_SIM_FAMILY(sdwa, {"(sdwa)", nullptr, bind_sdwa})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
