#include "sim/isa/opcodes.h"

#include <cstdlib>
#include <string_view>

namespace kerncap::sim::isa {
namespace {

struct Row {
  Encoding encoding;
  std::uint16_t number;
  const char* mnemonic;
  const char* operands;
};

#define ROW(encoding, number, mnemonic, operands) {Encoding::encoding, number, mnemonic, operands},
constexpr Row kGfx90a[] = {
#include "sim/isa/tables/gfx90a.inc"
};
constexpr Row kGfx942[] = {
#include "sim/isa/tables/gfx942.inc"
};
#undef ROW

std::vector<Opcode> parse(std::span<const Row> rows) {
  std::vector<Opcode> out;
  out.reserve(rows.size());
  for (const Row& row : rows) {
    Opcode opcode{row.encoding, row.number, row.mnemonic, 0, {}};
    for (const char* p = row.operands; *p != 0;) {
      char* end = nullptr;
      opcode.slots[opcode.slot_count++] = {*p, static_cast<std::uint8_t>(std::strtoul(p + 1, &end, 10))};
      p = *end == ' ' ? end + 1 : end;
    }
    out.push_back(opcode);
  }
  return out;
}

}  // namespace

const char* encoding_name(Encoding encoding) {
  static constexpr const char* kNames[] = {"SOP1", "SOPC",   "SOPP",    "SOPK",  "SOP2",  "SMEM",
                                           "VOP1", "VOP2",   "VOPC",    "VOP3",  "VOP3P", "DS",
                                           "FLAT", "GLOBAL", "SCRATCH", "MUBUF", "MTBUF"};
  return kNames[static_cast<unsigned>(encoding)];
}

OpcodeTable::OpcodeTable(Arch arch, std::vector<Opcode> rows) : arch_(arch), rows_(std::move(rows)) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    auto& index = index_[static_cast<unsigned>(rows_[i].encoding)];
    if (index.size() <= rows_[i].number) index.resize(rows_[i].number + 1u, 0xFFFF);
    index[rows_[i].number] = static_cast<std::uint16_t>(i);
  }
}

const OpcodeTable* opcode_table(Arch arch) {
  // Never destroyed: queues still decode while a program that returned with dispatches in flight ends.
  union Kept {
    OpcodeTable table;
    Kept(Arch of, std::span<const Row> rows) : table{of, parse(rows)} {}
    ~Kept() {}
  };
  switch (arch) {
    case Arch::gfx90a: {
      static const Kept kept(Arch::gfx90a, kGfx90a);
      return &kept.table;
    }
    case Arch::gfx942: {
      static const Kept kept(Arch::gfx942, kGfx942);
      return &kept.table;
    }
    default:
      return nullptr;
  }
}

}  // namespace kerncap::sim::isa
