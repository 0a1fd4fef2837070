// Predecoded code: one Program a loaded range (a function), decoded once, on its first use.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/isa/execute.h"

namespace kerncap::sim::isa {

class Program {
 public:
  // Decodes all of [base, base + bytes). What does not decode, or has no handler, becomes an instruction that
  // raises illegal_instruction when it is reached: text may hold data and padding.
  Program(Arch arch, std::uint64_t base, std::uint64_t bytes);

  [[nodiscard]] std::uint64_t base() const { return base_; }
  [[nodiscard]] std::uint64_t end() const { return base_ + bytes_; }
  // The instruction that starts at `address`; nullptr where the sweep has none (inside another instruction).
  [[nodiscard]] const Inst* at(std::uint64_t address) const;
  [[nodiscard]] bool owns(const Inst& inst) const {
    return &inst >= insts_.data() && &inst < insts_.data() + insts_.size();
  }
  [[nodiscard]] std::uint64_t address_of(const Inst& inst) const { return base_ + inst.offset; }

 private:
  void link_branches();
  std::uint64_t base_;
  std::uint64_t bytes_;
  std::vector<Inst> insts_;
  std::vector<std::uint32_t> index_;  // by dword; ~0: none
};

// Follows the reachable control flow from `base` and names the first instruction that does not decode or that
// nothing executes. Calls and indirect jumps are not followed (their targets are functions, checked
// themselves).
std::optional<std::string> check_reachable(Arch arch, std::uint64_t base, std::uint64_t bytes,
                                           const std::string& symbol);

}  // namespace kerncap::sim::isa
