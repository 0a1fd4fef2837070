// Names of registers and constants in LLVM's syntax.
#pragma once

#include <string>

#include "sim/isa/decode.h"

namespace kerncap::sim::isa {

std::string hex(std::uint32_t value);
// v7, a[0:3]
std::string vgpr_name(unsigned reg, unsigned width, bool acc);
// s4, s[4:5], vcc, exec_lo, m0, ttmp3 ...
std::string sgpr_name(unsigned reg, unsigned width);
// Any 8- or 9-bit source code; the literal is `literal`.
std::string source_name(unsigned code, unsigned width, bool acc, std::uint32_t literal);

}  // namespace kerncap::sim::isa
