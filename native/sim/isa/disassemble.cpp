#include "sim/isa/decode.h"
namespace kerncap::sim {
std::string disassemble(Arch arch, const void* code, std::size_t bytes, std::size_t* length) {
  const isa::OpcodeTable* table = isa::opcode_table(arch);
  *length = 0;
  if (table == nullptr) return {};
  const isa::Decoded d = isa::decode(*table, code, bytes);
  *length = d.length;
  return d.opcode != nullptr ? d.opcode->mnemonic : "";
}
}  // namespace kerncap::sim
