// A predecoded instruction: what the handlers see.
#pragma once

#include <cstdint>

#include "sim/isa/decode.h"

namespace kerncap::sim::isa {

struct Wave;
struct Inst;
using Handler = void (*)(Wave& wave, const Inst& inst);

// The register file of a wave: ArchVGPRs v0..v255 are 0..255, AccVGPRs a0..a255 are 256..511, and
// 16 temporaries follow, for handlers that hand a rearranged operand to another handler. The rest is
// slack, so that no tuple of registers can reach beyond the file.
inline constexpr unsigned kAgpr0 = 256;
inline constexpr unsigned kTempVgpr = 512;
inline constexpr unsigned kVgprFile = 560;

struct Operand {
  enum class Kind : std::uint8_t { vgpr, sgpr, constant, special };
  // How a constant fills a 64-bit operand.
  enum class Extend : std::uint8_t { zero, sign, high, inverse_2pi };
  Kind kind = Kind::constant;
  Extend extend = Extend::zero;
  std::uint16_t reg = 0;    // VGPR file index; SGPR number; for constant and special the raw source code
  std::uint32_t value = 0;  // constant, as a 32-bit operand of this instruction's type reads it
};

// Which unit of the cycle model an instruction occupies (device/cost.h has the table).
enum class Unit : std::uint8_t { scalar, valu, branch, lds, vmem, smem, none };
inline constexpr unsigned kUnits = 7;

// Which rounding field of MODE an instruction obeys.
enum class FloatClass : std::uint8_t { none, f32, f64_f16 };

struct Inst {
  Handler fn = nullptr;
  // What a wrapper (DPP, SDWA) calls once the operands are rearranged.
  Handler inner = nullptr;
  const Opcode* opcode = nullptr;
  Arch arch = Arch::gfx942;
  // VALU and SALU sources, in the order of the semantics: fmamk and fmaak are already fma, fmac has
  // its destination as src[2], v_cndmask and v_addc have their mask there, VOP2 and VOP3 look alike.
  Operand src[3];
  std::int32_t imm = 0;    // offset, simm16; for branches the distance to the target in Insts
  std::int32_t imm1 = 0;   // offset1 of two-address DS; s_setreg_imm32's literal
  std::uint16_t dst = 0;   // VGPR file index, or SGPR number where the destination is scalar
  std::uint16_t sdst = 0;  // VOP3B's second destination, or the compare's mask
  // Memory: VGPR file indices, and SGPR numbers.
  std::uint16_t addr = 0, data0 = 0, data1 = 0;
  std::uint8_t saddr = 0;  // kNoSaddr: off. MUBUF, SMEM: the resource or base
  std::uint8_t soffset = 0;
  // Modifiers, from VOP3, VOP3P, DPP or SDWA alike.
  std::uint8_t neg = 0, abs = 0, neg_hi = 0, op_sel = 0, op_sel_hi = 0, omod = 0;
  std::uint8_t flags = 0;  // Flag bits
  Modifier modifier = Modifier::none;
  std::uint32_t modifier_word = 0;
  std::uint32_t offset = 0;  // of this instruction, in bytes from the start of its Program
  std::uint8_t length = 4;
  Unit unit = Unit::none;
  std::uint16_t cost = 0;  // issue cycles
  FloatClass float_class = FloatClass::none;
  std::uint8_t count = 0;  // dwords (or the handler's own number) that the binder sets
  bool scalar_dst = false;
  bool far = false;  // a branch out of its Program: imm is then the raw distance in dwords

  enum Flag : std::uint8_t {
    clamp = 1,
    sc0 = 2,
    sc1 = 4,
    nt = 8,
    lds = 16,
    offen = 32,
    idxen = 64,
    uses_vaddr = 128  // SCRATCH: addr is part of the address
  };
  [[nodiscard]] bool has(Flag flag) const { return (flags & flag) != 0; }
  [[nodiscard]] bool modified() const { return neg != 0 || abs != 0 || omod != 0 || has(clamp); }
};

// Fills everything but fn, inner, unit and cost. False for a form the simulator has no meaning for, with
// the reason in `*why`.
bool lower(const Decoded& decoded, Inst* inst, const char** why);

}  // namespace kerncap::sim::isa
