// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: 2.1 (ModR/M and SIB), 2.2.1 (REX),
// appendix A (opcodes).
#include "interpose/cuda/movable_code.h"

#include <algorithm>
#include <cstdint>

namespace kerncap::interpose::cuda {
namespace {

using Code = std::span<const unsigned char>;

constexpr unsigned char kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

// ModR/M with what follows it, or 0 where the operand is relative to rip.
std::size_t operand_bytes(Code code) {
  if (code.empty()) return 0;
  const unsigned mod = code[0] >> 6, rm = code[0] & 7;
  if (mod == 3) return 1;
  if (mod == 0 && rm == 5) return 0;
  std::size_t bytes = mod == 1 ? 2 : mod == 2 ? 5 : 1;
  if (rm != 4) return bytes;
  if (code.size() < 2) return 0;
  if (mod == 0 && (code[1] & 7) == 5) bytes += 4;
  return bytes + 1;
}

// The instruction's length; 0: not one of those that may be moved.
std::size_t instruction_bytes(Code code) {
  std::size_t prefixes = 0;
  const auto at = [&](std::size_t i) -> unsigned {
    return prefixes + i < code.size() ? code[prefixes + i] : 0xcc;  // int3, which is none of them
  };
  if (at(0) == 0x66) {  // nops alone: elsewhere it would change the width of an immediate
    ++prefixes;
    if (at(0) == 0x90) return 2;
    if (at(0) != 0x0f || at(1) != 0x1f) return 0;
  }
  bool wide = false;
  if (at(0) >= 0x40 && at(0) <= 0x4f) {
    wide = (at(0) & 8) != 0;
    ++prefixes;
  }
  const unsigned opcode = at(0);
  if (opcode >= 0x50 && opcode <= 0x5f) return prefixes + 1;                   // push, pop
  if (opcode == 0x90) return prefixes + 1;                                     // nop
  if (opcode == 0x6a) return prefixes + 2;                                     // push imm8
  if (opcode == 0x68) return prefixes + 5;                                     // push imm32
  if (opcode >= 0xb8 && opcode <= 0xbf) return prefixes + 1 + (wide ? 8 : 4);  // mov r, imm
  std::size_t opcode_bytes = 1, immediate = 0;
  switch (opcode) {
    case 0x01:
    case 0x03:  // add
    case 0x09:
    case 0x0b:  // or
    case 0x21:
    case 0x23:  // and
    case 0x29:
    case 0x2b:  // sub
    case 0x31:
    case 0x33:  // xor
    case 0x39:
    case 0x3b:  // cmp
    case 0x63:  // movsxd
    case 0x84:
    case 0x85:  // test
    case 0x88:
    case 0x89:
    case 0x8a:
    case 0x8b:  // mov
    case 0x8d:  // lea
      break;
    case 0x80:
    case 0x83:  // arithmetic with an imm8
      immediate = 1;
      break;
    case 0x81:  // with an imm32
      immediate = 4;
      break;
    case 0xc6:
    case 0xc7:  // mov m, imm; with other digits in ModR/M these are xabort and xbegin
      if ((at(1) >> 3 & 7) != 0) return 0;
      immediate = opcode == 0xc6 ? 1 : 4;
      break;
    case 0x0f:
      switch (at(1)) {
        case 0x10:
        case 0x11:
        case 0x28:
        case 0x29:  // movups, movaps
        case 0x1f:  // nop
        case 0xb6:
        case 0xb7:
        case 0xbe:
        case 0xbf:  // movzx, movsx
          opcode_bytes = 2;
          break;
        default:
          return 0;
      }
      break;
    default:
      return 0;
  }
  const std::size_t begin = std::min(prefixes + opcode_bytes, code.size());
  const std::size_t operand = operand_bytes(code.subspan(begin));
  if (operand == 0) return 0;
  const std::size_t bytes = begin + operand + immediate;
  return bytes <= code.size() ? bytes : 0;
}

}  // namespace

std::size_t landing_pad(Code code) {
  const bool there =
      code.size() >= sizeof kEndbr64 && std::equal(std::begin(kEndbr64), std::end(kEndbr64), code.begin());
  return there ? sizeof kEndbr64 : 0;
}

std::size_t movable_bytes(Code code, std::size_t wanted) {
  std::size_t bytes = 0;
  while (bytes < wanted) {
    const std::size_t next = instruction_bytes(code.subspan(bytes));
    if (next == 0) return 0;
    bytes += next;
  }
  return bytes;
}

}  // namespace kerncap::interpose::cuda
