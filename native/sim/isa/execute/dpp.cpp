// DPP: src0 comes from another lane (CDNA3 ISA document, "Data Parallel Primitives"). The operand is
// rearranged into a temporary register and the ordinary handler runs with the lanes that may write.
#include <array>

#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

constexpr u8 kNone = 255;
using Source = std::array<u8, kLanes>;

// Where each lane's value comes from; kNone beyond the row or the wave.
constexpr Source source_lanes(unsigned control) {
  Source from{};
  for (unsigned l = 0; l < kLanes; ++l) {
    const unsigned row = l & ~15u, at = l & 15u, by = control & 15u;
    unsigned s = kNone;
    if (control < 0x100)
      s = (l & ~3u) + (control >> (l & 3u) * 2 & 3u);  // quad_perm
    else if (control > 0x100 && control < 0x110)
      s = at + by < 16 ? l + by : kNone;  // row_shl
    else if (control > 0x110 && control < 0x120)
      s = at >= by ? l - by : kNone;  // row_shr
    else if (control > 0x120 && control < 0x130)
      s = row + ((at - by) & 15u);  // row_ror
    else if (control == 0x130)
      s = l < 63 ? l + 1 : kNone;  // wave_shl
    else if (control == 0x134)
      s = (l + 1) & 63u;  // wave_rol
    else if (control == 0x138)
      s = l > 0 ? l - 1 : kNone;  // wave_shr
    else if (control == 0x13C)
      s = (l - 1) & 63u;  // wave_ror
    else if (control == 0x140)
      s = row + 15 - at;  // row_mirror
    else if (control == 0x141)
      s = (l & ~7u) + 7 - (l & 7u);  // row_half_mirror
    else if (control == 0x142)
      s = row > 0 ? row - 1 : kNone;  // row_bcast:15
    else if (control == 0x143)
      s = l >= 32 ? 31 : kNone;  // row_bcast:31
    else if (control >= 0x150 && control < 0x160)
      s = row + by;  // row_newbcast
    from[l] = static_cast<u8>(s);
  }
  return from;
}

bool known(unsigned control) {
  return control < 0x100 || (control > 0x100 && control < 0x130 && (control & 15u) != 0) ||
         control == 0x130 || control == 0x134 || control == 0x138 || control == 0x13C ||
         (control >= 0x140 && control <= 0x143) || (control >= 0x150 && control < 0x160);
}

const Source& source_of(unsigned control) {
  static const std::array<Source, 512> all = [] {
    std::array<Source, 512> table{};
    for (unsigned c = 0; c < table.size(); ++c) table[c] = source_lanes(c);
    return table;
  }();
  return all[control];
}

// The lanes of the rows and banks (four lanes of each row) that may write.
u64 enabled_lanes(unsigned row_mask, unsigned bank_mask) {
  u64 row = 0;
  for (unsigned b = 0; b < 4; ++b)
    if (bank_mask >> b & 1u) row |= 0xFull << 4 * b;
  u64 all = 0;
  for (unsigned r = 0; r < 4; ++r)
    if (row_mask >> r & 1u) all |= row << 16 * r;
  return all;
}

template <unsigned Width, bool SetsExec>
void dpp(Wave& w, const Inst& i) {
  const u32 word = i.modifier_word;
  const Source& from = source_of(word >> 8 & 0x1FFu);
  const bool bound_ctrl = word >> 19 & 1u;
  const u64 exec = w.exec();
  const u32* mask = w.mask();
  Inst inner = i;
  inner.src[0].reg = kTempVgpr;
  alignas(64) u32 valid[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) valid[l] = from[l] == kNone ? 0 : mask[from[l] & 63u];
  for (unsigned d = 0; d < Width; ++d) {
    const u32* source = w.v[i.src[0].reg + d].lane;
    u32* moved = w.v[kTempVgpr + d].lane;
    for (unsigned l = 0; l < kLanes; ++l) moved[l] = source[from[l] & 63u] & valid[l];
  }
  u64 writes = exec & enabled_lanes(word >> 28, word >> 24 & 15u);
  // Without bound_ctrl a lane that has no source keeps its destination; with it the source is 0.
  if (!bound_ctrl) {
    u64 sourced = 0;
    for (unsigned l = 0; l < kLanes; ++l) sourced |= static_cast<u64>(valid[l] & 1u) << l;
    writes &= sourced;
  }
  w.set_exec(writes);
  i.inner(w, inner);
  if constexpr (!SetsExec) w.set_exec(exec);
}

Handler bind_dpp(Inst& i) {
  if (!known(i.modifier_word >> 8 & 0x1FFu) || i.src[0].kind != Operand::Kind::vgpr) return nullptr;
  const bool sets_exec = std::strncmp(i.opcode->mnemonic, "v_cmpx", 6) == 0;
  const bool wide = i.opcode->width('0') == 2;
  if (wide) return sets_exec ? dpp<2, true> : dpp<2, false>;
  return sets_exec ? dpp<1, true> : dpp<1, false>;
}

}  // namespace

KERNCAP_SIM_FAMILY(dpp, {"(dpp)", nullptr, bind_dpp})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
