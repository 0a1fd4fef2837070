// Choosing the compiled level of the handlers, and giving each instruction its handler.
#include <cstdlib>
#include <string_view>

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

// The name that an instruction's handler goes by. On CDNA2 a bit sends what GLOBAL and SCRATCH load to LDS,
// where later GPUs have instructions of their own.
std::string handler_name(const Inst& inst) {
  std::string name = inst.opcode->mnemonic;
  const Encoding encoding = inst.opcode->encoding;
  const bool flat =
      encoding == Encoding::FLAT || encoding == Encoding::GLOBAL || encoding == Encoding::SCRATCH;
  if (inst.arch == Arch::gfx90a && flat && inst.has(Inst::lds)) name.insert(name.find('_') + 5, "_lds");
  return name;
}

}  // namespace

bool bind(Inst* inst, std::string* why) {
  const auto& by_name = handlers().by_name;
  const auto choose = [&](const Entry& entry) {
    return entry.binder != nullptr ? entry.binder(*inst) : entry.handler;
  };
  const auto found = by_name.find(handler_name(*inst));
  set_cost(cost_table(inst->arch), inst);
  if (found != by_name.end()) inst->fn = choose(found->second);
  if (inst->fn == nullptr) {
    *why = "the simulator does not execute this instruction";
    return false;
  }
  if (inst->modifier == Modifier::none) return true;
  const bool dpp = inst->modifier == Modifier::dpp;
  const auto wrapper = by_name.find(dpp ? "(dpp)" : "(sdwa)");
  inst->inner = inst->fn;
  inst->fn = wrapper != by_name.end() ? choose(wrapper->second) : nullptr;
  if (inst->fn == nullptr) {
    *why = dpp ? "the simulator does not execute this DPP form"
               : "the simulator does not execute this SDWA form";
    return false;
  }
  return true;
}

}  // namespace kerncap::sim::isa
