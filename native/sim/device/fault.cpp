// Names of architectures, and a fault in words.
#include <cinttypes>
#include <cstdio>

#include "sim/device/gpu.h"

namespace kerncap::sim {

std::optional<Arch> parse_arch(const std::string& name) {
  for (const Arch arch : {Arch::gfx90a, Arch::gfx942, Arch::gfx1100})
    if (name == arch_name(arch)) return arch;
  return std::nullopt;
}

const char* arch_name(Arch arch) {
  switch (arch) {
    case Arch::gfx90a:
      return "gfx90a";
    case Arch::gfx942:
      return "gfx942";
    default:
      return "gfx1100";
  }
}

namespace {

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

const char* what(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::memory_read:
      return "read of memory that is not allocated";
    case Fault::Kind::memory_write:
      return "write to memory that is not allocated";
    case Fault::Kind::write_to_read_only:
      return "write to read-only memory";
    case Fault::Kind::misaligned_atomic:
      return "misaligned atomic operation";
    case Fault::Kind::lds_out_of_range:
      return "LDS access out of range";
    case Fault::Kind::illegal_instruction:
      return "illegal instruction";
    case Fault::Kind::trap:
      return "trap";
    case Fault::Kind::time_limit:
      return "stopped";
    default:
      return "dispatch refused";
  }
}

}  // namespace

std::string Fault::to_string() const {
  std::string out = what(kind);
  if (bytes != 0) out += " at " + hex(address) + " (" + std::to_string(bytes) + " bytes)";
  if (!kernel.empty()) out += " in kernel " + kernel;
  if (pc != 0) out += ", pc " + hex(pc) + " (+" + hex(offset) + ")";
  if (!source.empty()) out += ", " + source;
  if (!instruction.empty()) out += ", instruction '" + instruction + "'";
  if (pc != 0) {
    out += ", workgroup (" + std::to_string(workgroup[0]) + ", " + std::to_string(workgroup[1]) + ", " +
           std::to_string(workgroup[2]) + "), wave " + std::to_string(wave);
    if (lane >= 0) out += ", lane " + std::to_string(lane);
  }
  out += ".";
  if (nearest) {
    out += std::string(" The nearest allocation is ") + nearest->kind + " memory at " + hex(nearest->base) +
           ", " + std::to_string(nearest->size) + " bytes";
    if (address < nearest->base)
      out += "; the access is " + std::to_string(nearest->base - address) + " bytes before it";
    else if (address >= nearest->end())
      out += "; the access is " + std::to_string(address - nearest->end()) + " bytes past its end";
    out += ".";
  }
  if (!detail.empty()) out += " " + detail + ".";
  return out;
}

}  // namespace kerncap::sim
