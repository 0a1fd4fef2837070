#include "sim/isa/program.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace kerncap::sim::isa {
namespace {

[[noreturn]] void illegal(Wave& /*wave*/, const Inst& inst) {
  throw Trouble{Fault::Kind::illegal_instruction, -1, 0, 0,
                inst.opcode != nullptr ? "the simulator does not execute this instruction"
                                       : "these bytes are no instruction of this GPU"};
}

// Behind the last instruction of a range: what follows may be another range.
void leave_range(Wave& wave, const Inst& inst) {
  const std::uint64_t next = wave.around->address_of(inst);
  wave.pc = &inst;  // a fault here names this place
  wave.pc = wave.around->code_at(next);
  ++wave.budget;  // no instruction of the program
}

bool is_branch(const Opcode& op) { return op.slot('l') != nullptr; }

std::uint64_t branch_target(std::uint64_t address, const Inst& inst) {
  return address + 4 + static_cast<std::uint64_t>(static_cast<std::int64_t>(inst.imm) * 4);
}

}  // namespace

Program::Program(Arch arch, std::uint64_t base, std::uint64_t bytes) : base_(base), bytes_(bytes & ~3ull) {
  const OpcodeTable* table = opcode_table(arch);
  index_.assign(bytes_ / 4 + 1, ~0u);
  insts_.reserve(bytes_ / 6 + 2);
  const auto* code = reinterpret_cast<const std::uint8_t*>(base_);
  for (std::uint64_t at = 0; at < bytes_;) {
    Inst inst;
    const char* why = "";
    std::string reason;
    const Decoded decoded = decode(*table, code + at, bytes_ - at);
    if (!lower(decoded, &inst, &why) || !bind(&inst, &reason)) {
      const Opcode* opcode = decoded.opcode;
      inst.fn = illegal;
      inst.opcode = opcode;
      inst.length = static_cast<std::uint8_t>(decoded.opcode != nullptr ? decoded.length : 4);
    }
    inst.offset = static_cast<std::uint32_t>(at);
    index_[at / 4] = static_cast<std::uint32_t>(insts_.size());
    insts_.push_back(inst);
    at += inst.length;
  }
  Inst tail;
  tail.fn = leave_range;
  tail.offset = static_cast<std::uint32_t>(bytes_);
  index_[bytes_ / 4] = static_cast<std::uint32_t>(insts_.size());
  insts_.push_back(tail);
  link_branches();
}

const Inst* Program::at(std::uint64_t address) const {
  if (address < base_ || address > end() || (address & 3u) != 0) return nullptr;
  const std::uint32_t index = index_[(address - base_) / 4];
  return index == ~0u ? nullptr : &insts_[index];
}

// Distances in dwords become distances in Insts, relative to the branch itself.
void Program::link_branches() {
  for (Inst& inst : insts_) {
    if (inst.opcode == nullptr || !is_branch(*inst.opcode) || inst.fn == illegal) continue;
    const Inst* target = at(branch_target(base_ + inst.offset, inst));
    if (target != nullptr) {
      inst.imm = static_cast<std::int32_t>(target - &inst);
    } else {
      inst.far = true;
    }
  }
}

std::optional<std::string> check_reachable(Arch arch, std::uint64_t base, std::uint64_t bytes,
                                           const std::string& symbol) {
  const OpcodeTable* table = opcode_table(arch);
  if (table == nullptr) return std::string(arch_name(arch)) + " code cannot be executed: no opcode table";
  std::vector<bool> seen(bytes / 4, false);
  std::vector<std::uint64_t> open{0};
  const auto* code = reinterpret_cast<const std::uint8_t*>(base);
  while (!open.empty()) {
    std::uint64_t at = open.back();
    open.pop_back();
    while (at + 4 <= bytes && !seen[at / 4]) {
      seen[at / 4] = true;
      const Decoded decoded = decode(*table, code + at, bytes - at);
      Inst inst;
      const char* why = "";
      std::string reason;
      bool good = lower(decoded, &inst, &why);
      if (!good)
        reason = why;
      else
        good = bind(&inst, &reason);
      if (!good) {
        std::size_t length = 0;
        std::string text = disassemble(arch, code + at, bytes - at, &length);
        if (length == 0) {
          char word[48];
          std::snprintf(word, sizeof word, "bytes 0x%08x", decoded.words[0]);
          text = word;
        }
        char where[64];
        std::snprintf(where, sizeof where, "+0x%" PRIx64, at);
        return "'" + text + "' at " + symbol + where + ": " + reason;
      }
      const char* name = decoded.opcode->mnemonic;
      if (is_branch(*decoded.opcode)) {
        const std::uint64_t target = branch_target(at, inst);
        if (target < bytes && std::strcmp(name, "s_call_b64") != 0) open.push_back(target);
        if (std::strcmp(name, "s_branch") == 0) break;
      }
      if (std::strcmp(name, "s_endpgm") == 0 || std::strcmp(name, "s_setpc_b64") == 0 ||
          std::strcmp(name, "s_endpgm_saved") == 0)
        break;
      at += decoded.length;
    }
  }
  return std::nullopt;
}

}  // namespace kerncap::sim::isa
