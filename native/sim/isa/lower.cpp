// Decoded fields to a predecoded instruction: one shape for VOP2 and VOP3, for all memory formats.
#include <cstring>

#include "sim/isa/inst.h"

namespace kerncap::sim::isa {
namespace {

// Inline constants 240..248 as f32, f16 and the high dword of f64 (ISA document, "Scalar ALU operands").
constexpr std::uint32_t kInlineF32[] = {0x3F000000, 0xBF000000, 0x3F800000, 0xBF800000, 0x40000000,
                                        0xC0000000, 0x40800000, 0xC0800000, 0x3E22F983};
constexpr std::uint32_t kInlineF16[] = {0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000,
                                        0xC000, 0x4400, 0xC400, 0x3118};
constexpr std::uint32_t kInlineF64[] = {0x3FE00000, 0xBFE00000, 0x3FF00000, 0xBFF00000, 0x40000000,
                                        0xC0000000, 0x40100000, 0xC0100000, 0x3FC45F30};

// The type of an instruction's sources is the last one that its name says.
bool ends_with(const char* name, const char* tail) {
  const std::size_t n = std::strlen(name), t = std::strlen(tail);
  return n >= t && std::strcmp(name + n - t, tail) == 0;
}
bool sources_16_bit(const char* name) {
  return ends_with(name, "f16") || ends_with(name, "i16") || ends_with(name, "u16") || ends_with(name, "b16");
}

Operand operand(const Decoded& d, unsigned n, unsigned width) {
  Operand o;
  const unsigned code = d.src[n];
  o.reg = static_cast<std::uint16_t>(code);
  if (code >= kSrcVgpr0) {
    o.kind = Operand::Kind::vgpr;
    o.reg = static_cast<std::uint16_t>(code - kSrcVgpr0 + (d.src_acc[n] ? kAgpr0 : 0));
    return o;
  }
  if (code < 128) {
    o.kind = Operand::Kind::sgpr;
    return o;
  }
  const char* name = d.opcode->mnemonic;
  if (code <= 192) {
    o.value = code - 128;
  } else if (code <= 208) {
    o.value = 192u - code;
    o.extend = Operand::Extend::sign;
  } else if (code >= 240 && code <= 248) {
    if (width >= 2 && std::strstr(name, "pk_") == nullptr) {
      o.value = kInlineF64[code - 240];
      o.extend = code == 248 ? Operand::Extend::inverse_2pi : Operand::Extend::high;
    } else {
      o.value = sources_16_bit(name) ? kInlineF16[code - 240] : kInlineF32[code - 240];
    }
  } else if (code == kSrcLiteral) {
    o.value = d.literal;
    if (width >= 2) {
      if (std::strstr(name, "f64") != nullptr)
        o.extend = Operand::Extend::high;
      else if (std::strstr(name, "i64") != nullptr)
        o.extend = Operand::Extend::sign;
    }
  } else {
    o.kind = Operand::Kind::special;
  }
  return o;
}

Operand vgpr_operand(unsigned reg) {
  Operand o;
  o.kind = Operand::Kind::vgpr;
  o.reg = static_cast<std::uint16_t>(reg);
  return o;
}
Operand sgpr_operand(unsigned reg) {
  Operand o;
  o.kind = Operand::Kind::sgpr;
  o.reg = static_cast<std::uint16_t>(reg);
  return o;
}
Operand literal_operand(std::uint32_t value) {
  Operand o;
  o.reg = kSrcLiteral;
  o.value = value;
  return o;
}

bool starts_with(const char* name, const char* head) {
  return std::strncmp(name, head, std::strlen(head)) == 0;
}

void lower_alu(const Decoded& d, Inst& i) {
  const Opcode& op = *d.opcode;
  for (unsigned n = 0; n < 3; ++n) {
    const Slot* slot = op.slot(static_cast<char>('0' + n));
    if (slot == nullptr && op.slot('g') && n == 0) slot = op.slot('g');
    if (slot != nullptr) i.src[n] = operand(d, n, slot->width);
  }
  i.scalar_dst = op.slot('d') != nullptr;
  i.dst = static_cast<std::uint16_t>(d.vdst + (!i.scalar_dst && d.dst_acc ? kAgpr0 : 0));
  i.sdst = d.sdst;
  const bool vop2 = op.encoding == Encoding::VOP2;
  if (op.slot('K') && vop2) {
    const bool mk = starts_with(op.mnemonic, "v_fmamk") || starts_with(op.mnemonic, "v_madmk");
    if (mk) i.src[2] = i.src[1];
    i.src[mk ? 1 : 2] = literal_operand(d.literal);
  } else if (vop2 && op.slot_count > 0 && op.slots[op.slot_count - 1].field == 'c') {
    i.src[2] = sgpr_operand(kSrcVcc);  // v_cndmask, v_addc
  }
  if (std::strstr(op.mnemonic, "_fmac_") || std::strstr(op.mnemonic, "_mac_") ||
      starts_with(op.mnemonic, "v_dot2c") || starts_with(op.mnemonic, "v_dot4c") ||
      starts_with(op.mnemonic, "v_dot8c"))
    i.src[2] = vgpr_operand(i.dst);
  if (op.encoding == Encoding::VOP3 && i.scalar_dst) i.sdst = d.vdst;  // compares
}

void lower_memory(const Decoded& d, Inst& i) {
  const unsigned acc = d.data_acc ? kAgpr0 : 0;
  i.addr = d.vaddr;
  i.data0 = static_cast<std::uint16_t>(d.data0 + acc);
  i.data1 = static_cast<std::uint16_t>(d.data1 + acc);
  i.dst = static_cast<std::uint16_t>(d.vdst + acc);
  i.imm = d.offset;
  i.imm1 = d.offset1;
  // FLAT has no scalar address: the field is unused there.
  i.saddr = d.opcode->encoding == Encoding::FLAT ? kNoSaddr : d.saddr;
  i.soffset = d.soffset;
  if (d.opcode->encoding >= Encoding::MUBUF) i.saddr = d.srsrc;
  if (d.opcode->encoding == Encoding::MTBUF) i.modifier_word = d.format;
}

}  // namespace

bool lower(const Decoded& d, Inst* inst, const char** why) {
  Inst& i = *inst;
  i = Inst{};
  if (d.opcode == nullptr) {
    *why = d.why;
    return false;
  }
  i.opcode = d.opcode;
  i.arch = d.arch;
  i.length = static_cast<std::uint8_t>(d.length);
  i.neg = d.neg;
  i.abs = d.abs;
  i.neg_hi = d.neg_hi;
  i.op_sel = d.op_sel;
  i.op_sel_hi = d.op_sel_hi;
  i.omod = d.omod;
  i.modifier = d.modifier;
  i.modifier_word = d.modifier_word;
  i.flags = static_cast<std::uint8_t>((d.clamp ? Inst::clamp : 0) | (d.sc0 ? Inst::sc0 : 0) |
                                      (d.sc1 ? Inst::sc1 : 0) | (d.nt ? Inst::nt : 0) |
                                      (d.lds ? Inst::lds : 0) | (d.offen ? Inst::offen : 0) |
                                      (d.idxen ? Inst::idxen : 0) | (d.sve ? Inst::uses_vaddr : 0));
  switch (d.opcode->encoding) {
    case Encoding::SOPK:
    case Encoding::SOPP:
      i.imm = d.simm16;
      i.dst = d.vdst;
      i.scalar_dst = true;
      i.imm1 = static_cast<std::int32_t>(d.literal);
      break;
    case Encoding::SMEM:
      i.dst = d.vdst;
      i.scalar_dst = true;
      i.saddr = d.srsrc;
      i.imm = d.offset;
      i.soffset = d.smem_soffset_en || !d.smem_imm ? d.soffset : 127;  // 127: none
      break;
    case Encoding::DS:
      if (d.gds && !starts_with(d.opcode->mnemonic, "ds_gws_")) {
        *why = "global data share (gds) is not simulated";
        return false;
      }
      [[fallthrough]];
    case Encoding::FLAT:
    case Encoding::GLOBAL:
    case Encoding::SCRATCH:
    case Encoding::MUBUF:
    case Encoding::MTBUF:
      lower_memory(d, i);
      break;
    default:
      i.imm = d.simm16;
      lower_alu(d, i);
      break;
  }
  return true;
}

}  // namespace kerncap::sim::isa
