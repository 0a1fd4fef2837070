#include "sim/isa/registers.h"

#include <cstdio>

namespace kerncap::sim::isa {
namespace {

std::string tuple(const char* prefix, unsigned first, unsigned width) {
  const std::string name(prefix);
  if (width <= 1) return name + std::to_string(first);
  return name + "[" + std::to_string(first) + ":" + std::to_string(first + width - 1) + "]";
}

// A pair of special SGPRs, or one half of it.
std::string pair(const char* name, unsigned half, unsigned width) {
  if (width >= 2) return name;
  return std::string(name) + (half == 0 ? "_lo" : "_hi");
}

}  // namespace

std::string hex(std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", value);
  return text;
}

std::string vgpr_name(unsigned reg, unsigned width, bool acc) { return tuple(acc ? "a" : "v", reg, width); }

std::string sgpr_name(unsigned reg, unsigned width) {
  if (reg < 102) return tuple("s", reg, width);
  if (reg < 104) return pair("flat_scratch", reg - 102, width);
  if (reg < 106) return pair("xnack_mask", reg - 104, width);
  if (reg < 108) return pair("vcc", reg - 106, width);
  if (reg < 124) return tuple("ttmp", reg - 108, width);
  if (reg == kSrcM0) return "m0";
  if (reg >= 126) return pair("exec", reg - 126, width);
  return "s" + std::to_string(reg);
}

std::string source_name(unsigned code, unsigned width, bool acc, std::uint32_t literal) {
  static constexpr const char* kFloats[] = {"0.5",  "-0.5", "1.0",  "-1.0",      "2.0",
                                            "-2.0", "4.0",  "-4.0", "0.15915494"};
  if (code >= kSrcVgpr0) return vgpr_name(code - kSrcVgpr0, width, acc);
  if (code < 128) return sgpr_name(code, width);
  if (code <= 192) return std::to_string(code - 128);
  if (code <= 208) return "-" + std::to_string(code - 192);
  if (code >= 240 && code <= 248) return kFloats[code - 240];
  switch (code) {
    case 235:
      return "src_shared_base";
    case 236:
      return "src_shared_limit";
    case 237:
      return "src_private_base";
    case 238:
      return "src_private_limit";
    case 239:
      return "src_pops_exiting_wave_id";
    case 251:
      return "src_vccz";
    case 252:
      return "src_execz";
    case 253:
      return "src_scc";
    case 254:
      return "src_lds_direct";
    case kSrcLiteral:
      return hex(literal);
    default:
      return "src_" + std::to_string(code);
  }
}

}  // namespace kerncap::sim::isa
