// From bytes to fields: the microcode formats of gfx9 (CDNA2 and CDNA3 ISA documents, "Microcode formats").
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/isa/opcodes.h"

namespace kerncap::sim::isa {

// Codes of the 8- and 9-bit source fields that are neither a register nor an inline constant.
inline constexpr unsigned kSrcVcc = 106;
inline constexpr unsigned kSrcM0 = 124;
inline constexpr unsigned kSrcExec = 126;
inline constexpr unsigned kSrcSdwa = 249;
inline constexpr unsigned kSrcDpp = 250;
inline constexpr unsigned kSrcLiteral = 255;
inline constexpr unsigned kSrcVgpr0 = 256;
inline constexpr unsigned kNoSaddr = 127;  // "off"

// DPP and SDWA replace src0 by a dword of their own that follows VOP1, VOP2 and VOPC.
enum class Modifier : std::uint8_t { none, dpp, sdwa };

struct Decoded {
  Arch arch = Arch::gfx942;
  const Opcode* opcode = nullptr;  // nullptr: does not decode; `why` says what is wrong
  const char* why = "";
  unsigned length = 0;  // bytes
  std::uint32_t words[3] = {};
  bool has_literal = false;
  std::uint32_t literal = 0;

  std::uint16_t src[3] = {};  // raw 9-bit codes; with DPP or SDWA src[0] is the code inside that dword
  bool src_acc[3] = {};       // the VGPR is an accumulation VGPR
  std::uint16_t vdst = 0;     // also sdst of SALU, SMEM and of VOP3 compares
  bool dst_acc = false;
  std::uint16_t sdst = 0;  // VOP3B, and SDWA compares
  std::int32_t simm16 = 0;

  Modifier modifier = Modifier::none;
  std::uint32_t modifier_word = 0;
  std::uint8_t neg = 0, abs = 0, neg_hi = 0, op_sel = 0, op_sel_hi = 0, omod = 0;
  bool clamp = false;

  // Memory formats.
  std::uint8_t vaddr = 0, data0 = 0, data1 = 0, saddr = 0, srsrc = 0, soffset = 0;
  std::int32_t offset = 0, offset1 = 0;
  // CDNA2 calls sc0, sc1 and nt glc, scc and slc.
  bool sc0 = false, sc1 = false, nt = false, lds = false, gds = false, offen = false, idxen = false;
  bool sve = false;  // SCRATCH: the address VGPR is used
  bool data_acc = false;
  bool smem_imm = false, smem_soffset_en = false;
  std::uint8_t format = 0;  // MTBUF: dfmt and nfmt
};

// Decodes the instruction at `code`, of which `bytes` may be read. Never reads more.
Decoded decode(const OpcodeTable& table, const void* code, std::size_t bytes);

}  // namespace kerncap::sim::isa
