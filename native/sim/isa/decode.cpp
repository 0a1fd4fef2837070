#include "sim/isa/decode.h"

#include <cstring>
#include <utility>

namespace kerncap::sim::isa {
namespace {

constexpr std::uint32_t field(std::uint32_t word, unsigned low, unsigned bits) {
  return word >> low & ((1u << bits) - 1u);
}
constexpr std::int32_t sign_extend(std::uint32_t value, unsigned bits) {
  return static_cast<std::int32_t>(value << (32 - bits)) >> (32 - bits);
}

// The class of the first dword; MIMG, EXP and the unused patterns are none.
bool classify(std::uint32_t w, Encoding* encoding, unsigned* number) {
  const auto set = [&](Encoding e, unsigned low, unsigned bits) {
    *encoding = e;
    *number = field(w, low, bits);
    return true;
  };
  if (w >> 31 == 0) {
    if (w >> 25 == 0x3F) return set(Encoding::VOP1, 9, 8);
    if (w >> 25 == 0x3E) return set(Encoding::VOPC, 17, 8);
    return set(Encoding::VOP2, 25, 6);
  }
  if (w >> 30 == 2) {
    if (w >> 23 == 0x17D) return set(Encoding::SOP1, 8, 8);
    if (w >> 23 == 0x17E) return set(Encoding::SOPC, 16, 7);
    if (w >> 23 == 0x17F) return set(Encoding::SOPP, 16, 7);
    if (w >> 28 == 0xB) return set(Encoding::SOPK, 23, 5);
    return set(Encoding::SOP2, 23, 7);
  }
  switch (w >> 26) {
    case 0x30:
      return set(Encoding::SMEM, 18, 8);
    case 0x34:
      return w >> 23 == 0x1A7 ? set(Encoding::VOP3P, 16, 7) : set(Encoding::VOP3, 16, 10);
    case 0x36:
      return set(Encoding::DS, 17, 8);
    case 0x37: {
      constexpr Encoding kSegments[] = {Encoding::FLAT, Encoding::SCRATCH, Encoding::GLOBAL,
                                        Encoding::GLOBAL};
      return field(w, 14, 2) != 3 && set(kSegments[field(w, 14, 2)], 18, 7);
    }
    case 0x38:
      return set(Encoding::MUBUF, 18, 7);
    case 0x3A:
      return set(Encoding::MTBUF, 15, 4);
    default:
      return false;
  }
}

void decode_scalar(Decoded& d, std::uint32_t w) {
  switch (d.opcode->encoding) {
    case Encoding::SOP1:
      d.src[0] = static_cast<std::uint16_t>(field(w, 0, 8));
      d.vdst = static_cast<std::uint16_t>(field(w, 16, 7));
      break;
    case Encoding::SOPC:
      d.src[0] = static_cast<std::uint16_t>(field(w, 0, 8));
      d.src[1] = static_cast<std::uint16_t>(field(w, 8, 8));
      d.simm16 = static_cast<std::int32_t>(field(w, 8, 8));  // s_set_gpr_idx_on: raw bits
      if (d.opcode->slot('k')) d.src[1] = 128;
      break;
    case Encoding::SOP2:
      d.src[0] = static_cast<std::uint16_t>(field(w, 0, 8));
      d.src[1] = static_cast<std::uint16_t>(field(w, 8, 8));
      d.vdst = static_cast<std::uint16_t>(field(w, 16, 7));
      break;
    case Encoding::SOPK:
      d.simm16 = sign_extend(w & 0xFFFF, 16);
      d.vdst = static_cast<std::uint16_t>(field(w, 16, 7));
      break;
    default:
      d.simm16 = sign_extend(w & 0xFFFF, 16);
      break;
  }
}

void decode_smem(Decoded& d, std::uint32_t w, std::uint32_t hi) {
  d.vdst = static_cast<std::uint16_t>(field(w, 6, 7));
  d.srsrc = static_cast<std::uint8_t>(field(w, 0, 6) * 2);
  d.sc0 = field(w, 16, 1);  // glc
  d.nt = field(w, 15, 1);   // nv
  d.smem_soffset_en = field(w, 14, 1);
  d.smem_imm = field(w, 17, 1);
  d.offset = d.smem_imm ? sign_extend(field(hi, 0, 21), 21) : 0;
  // Without IMM the offset field itself names the SGPR; with both, bits 31:25 do.
  d.soffset = static_cast<std::uint8_t>(d.smem_soffset_en ? field(hi, 25, 7) : field(hi, 0, 7));
}

void decode_modifier(Decoded& d, std::uint32_t word) {
  d.modifier_word = word;
  d.neg = static_cast<std::uint8_t>(
      field(word, 20, 1) | (d.modifier == Modifier::dpp ? field(word, 22, 1) : field(word, 28, 1)) << 1);
  d.abs = static_cast<std::uint8_t>(
      field(word, 21, 1) | (d.modifier == Modifier::dpp ? field(word, 23, 1) : field(word, 29, 1)) << 1);
  if (d.modifier == Modifier::dpp) {
    d.src[0] = static_cast<std::uint16_t>(kSrcVgpr0 + field(word, 0, 8));
    return;
  }
  d.src[0] = static_cast<std::uint16_t>(field(word, 0, 8) + (field(word, 23, 1) ? 0 : kSrcVgpr0));
  if (d.opcode->encoding != Encoding::VOP1)
    d.src[1] = static_cast<std::uint16_t>((d.src[1] & 0xFF) + (field(word, 31, 1) ? 0 : kSrcVgpr0));
  if (d.opcode->encoding == Encoding::VOPC) {
    d.sdst = static_cast<std::uint16_t>(field(word, 15, 1) ? field(word, 8, 7) : kSrcVcc);
  } else {
    d.clamp = field(word, 13, 1);
    d.omod = static_cast<std::uint8_t>(field(word, 14, 2));
  }
}

void decode_vop3(Decoded& d, std::uint32_t w, std::uint32_t hi) {
  const bool packed = d.opcode->encoding == Encoding::VOP3P;
  d.vdst = static_cast<std::uint16_t>(field(w, 0, 8));
  for (unsigned i = 0; i < 3; ++i) d.src[i] = static_cast<std::uint16_t>(field(hi, 9 * i, 9));
  d.neg = static_cast<std::uint8_t>(field(hi, 29, 3));
  d.clamp = field(w, 15, 1);
  if (packed) {
    d.neg_hi = static_cast<std::uint8_t>(field(w, 8, 3));
    d.op_sel = static_cast<std::uint8_t>(field(w, 11, 3));
    d.op_sel_hi = static_cast<std::uint8_t>(field(hi, 27, 2) | field(w, 14, 1) << 2);
    if (d.opcode->number >= 62) {  // MAI: the same bits say ACC, and blgp, cbsz, abid
      d.dst_acc = d.clamp;
      d.src_acc[0] = field(hi, 27, 1);
      d.src_acc[1] = field(hi, 28, 1);
      d.src_acc[2] = d.clamp;
      d.clamp = false;
      if (d.opcode->slot('G') || d.opcode->slot('g')) {  // v_accvgpr_*: the bits are fixed there
        d.dst_acc = d.opcode->slot('G') != nullptr;
        d.src_acc[0] = d.opcode->slot('g') != nullptr;
        d.src_acc[1] = d.src_acc[2] = false;
      }
      if (std::strncmp(d.opcode->mnemonic, "v_smfmac", 8) == 0) d.src_acc[2] = false;
    }
  } else if (d.opcode->slot('b')) {
    d.sdst = static_cast<std::uint16_t>(field(w, 8, 7));
    d.omod = static_cast<std::uint8_t>(field(hi, 27, 2));
  } else {
    d.abs = static_cast<std::uint8_t>(field(w, 8, 3));
    d.op_sel = static_cast<std::uint8_t>(field(w, 11, 4));
    d.omod = static_cast<std::uint8_t>(field(hi, 27, 2));
  }
}

void decode_memory(Decoded& d, std::uint32_t w, std::uint32_t hi) {
  switch (d.opcode->encoding) {
    case Encoding::DS:
      d.offset = static_cast<std::int32_t>(field(w, 0, 8));
      d.offset1 = static_cast<std::int32_t>(field(w, 8, 8));
      d.gds = field(w, 16, 1);
      d.data_acc = field(w, 25, 1);
      d.vaddr = static_cast<std::uint8_t>(field(hi, 0, 8));
      d.data0 = static_cast<std::uint8_t>(field(hi, 8, 8));
      d.data1 = static_cast<std::uint8_t>(field(hi, 16, 8));
      d.vdst = static_cast<std::uint16_t>(field(hi, 24, 8));
      break;
    case Encoding::FLAT:
    case Encoding::GLOBAL:
    case Encoding::SCRATCH:
      d.offset = d.opcode->encoding == Encoding::FLAT ? static_cast<std::int32_t>(field(w, 0, 12))
                                                      : sign_extend(field(w, 0, 13), 13);
      d.lds = field(w, 13, 1);
      d.sc0 = field(w, 16, 1);
      d.nt = field(w, 17, 1);
      d.sc1 = field(w, 25, 1);
      d.vaddr = static_cast<std::uint8_t>(field(hi, 0, 8));
      d.data0 = static_cast<std::uint8_t>(field(hi, 8, 8));
      d.saddr = static_cast<std::uint8_t>(field(hi, 16, 7));
      d.data_acc = field(hi, 23, 1);
      d.vdst = static_cast<std::uint16_t>(field(hi, 24, 8));
      // Whether SCRATCH has an address VGPR: CDNA3 says so in bit 13 (SVE); CDNA2 has one or the other
      // address.
      if (d.opcode->encoding == Encoding::SCRATCH)
        d.sve = d.arch == Arch::gfx90a ? d.saddr == kNoSaddr : std::exchange(d.lds, false);
      break;
    default:  // MUBUF, MTBUF
      d.offset = static_cast<std::int32_t>(field(w, 0, 12));
      d.offen = field(w, 12, 1);
      d.idxen = field(w, 13, 1);
      d.sc0 = field(w, 14, 1);
      if (d.opcode->encoding == Encoding::MUBUF) {
        d.sc1 = field(w, 15, 1);
        d.lds = field(w, 16, 1);
        d.nt = field(w, 17, 1);
      } else {
        d.format = static_cast<std::uint8_t>(field(w, 19, 7));
        d.sc1 = field(hi, 21, 1);
        d.nt = field(hi, 22, 1);
      }
      if (d.opcode->encoding == Encoding::MTBUF) d.sc1 = field(hi, 21, 1);
      d.vaddr = static_cast<std::uint8_t>(field(hi, 0, 8));
      d.data0 = static_cast<std::uint8_t>(field(hi, 8, 8));
      d.vdst = d.data0;
      d.srsrc = static_cast<std::uint8_t>(field(hi, 16, 5) * 4);
      d.data_acc = field(hi, 23, 1);
      d.soffset = static_cast<std::uint8_t>(field(hi, 24, 8));
      break;
  }
  d.dst_acc = d.data_acc;
}

}  // namespace

Decoded decode(const OpcodeTable& table, const void* code, std::size_t bytes) {
  Decoded d;
  d.arch = table.arch();
  const auto fail = [&](const char* why) {
    d.opcode = nullptr;
    d.why = why;
    d.length = 0;
    return d;
  };
  if (bytes < 4) return fail("the code ends inside an instruction");
  std::memcpy(d.words, code, bytes >= 8 ? 8 : 4);
  const std::uint32_t w = d.words[0];
  Encoding encoding{};
  unsigned number = 0;
  if (!classify(w, &encoding, &number)) return fail("no instruction format of this GPU");
  d.opcode = table.find(encoding, number);
  if (d.opcode == nullptr) return fail("an opcode this GPU does not have");

  const bool two_words = encoding == Encoding::SMEM || encoding >= Encoding::VOP3;
  d.length = two_words ? 8 : 4;
  if (bytes < d.length) return fail("the code ends inside an instruction");

  if (encoding <= Encoding::SOP2) {
    decode_scalar(d, w);
  } else if (encoding == Encoding::SMEM) {
    decode_smem(d, w, d.words[1]);
  } else if (encoding <= Encoding::VOPC) {
    d.src[0] = static_cast<std::uint16_t>(field(w, 0, 9));
    if (encoding != Encoding::VOP1) d.src[1] = static_cast<std::uint16_t>(field(w, 9, 8) + kSrcVgpr0);
    d.vdst = static_cast<std::uint16_t>(field(w, 17, 8));
    d.sdst = kSrcVcc;
    if (d.opcode->slot('G')) d.dst_acc = d.src_acc[0] = true;
    if (d.src[0] == kSrcSdwa || d.src[0] == kSrcDpp) {
      if (bytes < 8) return fail("the code ends inside an instruction");
      d.modifier = d.src[0] == kSrcDpp ? Modifier::dpp : Modifier::sdwa;
      d.length = 8;
      decode_modifier(d, d.words[1]);
      return d;
    }
  } else if (encoding <= Encoding::VOP3P) {
    decode_vop3(d, w, d.words[1]);
    return d;  // VOP3 on gfx9 has no literals
  } else {
    decode_memory(d, w, d.words[1]);
    return d;
  }

  const bool source_literal =
      encoding != Encoding::SMEM && encoding != Encoding::SOPP && encoding != Encoding::SOPK &&
      ((d.opcode->slot('0') && d.src[0] == kSrcLiteral) || (d.opcode->slot('1') && d.src[1] == kSrcLiteral));
  if (source_literal || d.opcode->slot('K')) {
    if (bytes < d.length + 4u) return fail("the code ends inside an instruction");
    d.has_literal = true;
    d.literal = d.words[1];
    d.length += 4;
  }
  return d;
}

}  // namespace kerncap::sim::isa
