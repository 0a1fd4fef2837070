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

constexpr Row kGfx942[] = {
#define ROW(encoding, number, mnemonic, operands) {Encoding::encoding, number, mnemonic, operands},
#include "sim/isa/tables/gfx942.inc"
#undef ROW
};

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

OpcodeTable::OpcodeTable(std::vector<Opcode> rows) : rows_(std::move(rows)) {
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
    Kept() : table{parse(kGfx942)} {}
    ~Kept() {}
  };
  static const Kept gfx942;
  return arch == Arch::gfx942 ? &gfx942.table : nullptr;
}

}  // namespace kerncap::sim::isa
