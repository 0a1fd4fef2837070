// The opcode tables: what each number means in each encoding, per architecture. They are made
// by gen/make_tables.py from the assembler; this is the only place that knows their format.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/device/gpu.h"

namespace kerncap::sim::isa {

enum class Encoding : std::uint8_t {
  SOP1,
  SOPC,
  SOPP,
  SOPK,
  SOP2,
  SMEM,
  VOP1,
  VOP2,
  VOPC,
  VOP3,
  VOP3P,
  DS,
  FLAT,
  GLOBAL,
  SCRATCH,
  MUBUF,
  MTBUF,
};
inline constexpr unsigned kEncodings = 17;
const char* encoding_name(Encoding encoding);

// One operand of the assembler's syntax. `field` is the letter that gen/make_tables.py explains.
struct Slot {
  char field = 0;
  std::uint8_t width = 1;  // dwords
};

struct Opcode {
  Encoding encoding = Encoding::SOPP;
  std::uint16_t number = 0;
  const char* mnemonic = "";  // without _e32, _e64, _dpp, _sdwa
  std::uint8_t slot_count = 0;
  Slot slots[6];

  [[nodiscard]] const Slot* slot(char field) const {
    for (unsigned i = 0; i < slot_count; ++i)
      if (slots[i].field == field) return &slots[i];
    return nullptr;
  }
  [[nodiscard]] unsigned width(char field) const {
    const Slot* found = slot(field);
    return found ? found->width : 0;
  }
};

class OpcodeTable {
 public:
  OpcodeTable(Arch arch, std::vector<Opcode> rows);
  [[nodiscard]] Arch arch() const { return arch_; }
  [[nodiscard]] const Opcode* find(Encoding encoding, unsigned number) const {
    const auto& index = index_[static_cast<unsigned>(encoding)];
    return number < index.size() && index[number] != 0xFFFF ? &rows_[index[number]] : nullptr;
  }
  [[nodiscard]] std::span<const Opcode> all() const { return rows_; }

 private:
  Arch arch_;
  std::vector<Opcode> rows_;
  std::vector<std::uint16_t> index_[kEncodings];
};

// nullptr where the simulator has no table for `arch` yet.
const OpcodeTable* opcode_table(Arch arch);

}  // namespace kerncap::sim::isa
