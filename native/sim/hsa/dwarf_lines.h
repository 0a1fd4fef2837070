// "file:line" of an instruction, from a code object's DWARF line table (versions 2 to 5, section 6.2).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kerncap::sim::rt {

struct DebugSections {
  std::vector<unsigned char> line, line_str, str;
};

// Empty when the table does not cover `address` (as in the ELF file, before loading).
std::string find_source_line(const DebugSections& sections, std::uint64_t address);

}  // namespace kerncap::sim::rt
