// Choosing the compiled level of the handlers, and giving each instruction its handler.
#include <cstdlib>
#include <string_view>
#include <vector>

#include "sim/device/cost.h"
#include "sim/isa/execute.h"

namespace kerncap::sim::isa {

namespace level_base {
const HandlerSet& handler_set();
}
namespace level_v3 {
const HandlerSet& handler_set();
}

const HandlerSet& handlers() {
  static const HandlerSet& chosen = []() -> const HandlerSet& {
    const char* forced = std::getenv("KERNCAP_SIM_LEVEL");
    if (forced != nullptr && std::string_view(forced) == "x86-64") return level_base::handler_set();
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
        __builtin_cpu_supports("f16c"))
      return level_v3::handler_set();
#endif
    return level_base::handler_set();
  }();
  return chosen;
}

namespace {

// What binding takes from an opcode alone. Loading a library binds hundreds of millions of bytes of code.
struct Bound {
  const Entry* plain = nullptr;
  // On CDNA2 a bit sends what GLOBAL and SCRATCH load to LDS, where later GPUs have instructions of their
  // own.
  bool has_lds_form = false;
  const Entry* to_lds = nullptr;
  Unit unit{};
  std::uint16_t cost = 0;
};

const Entry* entry(const std::string& name) {
  const auto found = handlers().by_name.find(name);
  return found != handlers().by_name.end() ? &found->second : nullptr;
}

std::vector<Bound> bound_opcodes(Arch arch) {
  std::vector<Bound> out;
  for (const Opcode& opcode : opcode_table(arch)->all()) {
    Bound bound;
    std::string name = opcode.mnemonic;
    bound.plain = entry(name);
    const Encoding encoding = opcode.encoding;
    const bool flat =
        encoding == Encoding::FLAT || encoding == Encoding::GLOBAL || encoding == Encoding::SCRATCH;
    bound.has_lds_form = arch == Arch::gfx90a && flat;
    const std::size_t verb = name.find('_');  // global_load_dword: behind "load"
    if (bound.has_lds_form && verb != std::string::npos && verb + 5 <= name.size())
      bound.to_lds = entry(name.insert(verb + 5, "_lds"));
    Inst inst;
    inst.arch = arch;
    inst.opcode = &opcode;
    set_cost(cost_table(arch), &inst);
    bound.unit = inst.unit;
    bound.cost = inst.cost;
    out.push_back(bound);
  }
  return out;
}

const Bound& bound_opcode(Arch arch, const Opcode& opcode) {
  // Never destroyed, as the opcodes themselves are not.
  static const auto& gfx90a = *new std::vector<Bound>(bound_opcodes(Arch::gfx90a));
  static const auto& gfx942 = *new std::vector<Bound>(bound_opcodes(Arch::gfx942));
  const std::size_t index = static_cast<std::size_t>(&opcode - opcode_table(arch)->all().data());
  return arch == Arch::gfx90a ? gfx90a[index] : gfx942[index];
}

}  // namespace

bool bind(Inst* inst, std::string* why) {
  static const Entry* const dpp_wrapper = entry("(dpp)");
  static const Entry* const sdwa_wrapper = entry("(sdwa)");
  const auto choose = [&](const Entry* found) {
    return found == nullptr ? nullptr : found->binder != nullptr ? found->binder(*inst) : found->handler;
  };
  const Bound& bound = bound_opcode(inst->arch, *inst->opcode);
  inst->unit = bound.unit;
  inst->cost = bound.cost;
  inst->fn = choose(bound.has_lds_form && inst->has(Inst::lds) ? bound.to_lds : bound.plain);
  if (inst->fn == nullptr) {
    *why = "the simulator does not execute this instruction";
    return false;
  }
  if (inst->modifier == Modifier::none) return true;
  const bool dpp = inst->modifier == Modifier::dpp;
  inst->inner = inst->fn;
  inst->fn = choose(dpp ? dpp_wrapper : sdwa_wrapper);
  if (inst->fn == nullptr) {
    *why = dpp ? "the simulator does not execute this DPP form"
               : "the simulator does not execute this SDWA form";
    return false;
  }
  return true;
}

}  // namespace kerncap::sim::isa
