// Executing instructions. How to add a family of them:
//
//   1. Write native/sim/isa/execute/<family>.cpp:
//
//        #include "sim/isa/lanes.h"
//        namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
//        namespace {
//        void v_add_u32(Wave& w, const Inst& i) { map2(w, i, [](u32 a, u32 b) { return a + b; }); }
//        }  // namespace
//        KERNCAP_SIM_FAMILY(valu_int,
//            {"v_add_u32", v_add_u32},            // a handler
//            {"v_add_f32", nullptr, bind_add})    // or a binder: Handler bind_add(Inst&)
//        }
//
//   2. Add one line X(valu_int) to families.h. CMake finds the file by itself.
//
// A mnemonic is named once, without _e32/_e64/_dpp/_sdwa; the handler sees VOP2 and VOP3 in the same shape
// (inst.h says how). A binder is called once per instruction at load: it picks the handler by the
// instruction's modifiers, may set inst.count, inst.cost and so on, and returns nullptr for a form that is
// not implemented (which check_code then reports at load, by name). Two names have a meaning of their own:
// "(dpp)" and "(sdwa)" are the wrappers that become `fn` of an instruction with that modifier, after its
// ordinary handler became `inner`.
//
// Handlers are compiled twice, for baseline x86-64 and for x86-64-v3; the level is chosen at run time. So
// they keep to the namespace KERNCAP_SIM_LEVEL and use no inline functions outside of it that the linker
// could share, except trivial ones. They report trouble with `throw Trouble{...}`. Issue cost and unit are
// set before the binder runs (cost.h); memory handlers add their own time through Wave::time.
#pragma once

#include <iterator>
#include <string>
#include <unordered_map>

#include "sim/isa/wave.h"

namespace kerncap::sim::isa {

using Binder = Handler (*)(Inst& inst);

struct Entry {
  const char* mnemonic;
  Handler handler = nullptr;
  Binder binder = nullptr;
};

struct Family {
  const Entry* entries;
  std::size_t count;
};

// One compiled level of the handlers.
struct HandlerSet {
  const char* level;
  std::unordered_map<std::string, Entry> by_name;
  // Runs `wave` until its budget is used up or its state is no longer running.
  void (*run)(Wave& wave);
};

// The best level this machine's processor has ("x86-64-v3" or "x86-64"); KERNCAP_SIM_LEVEL=x86-64 forces the
// lower.
const HandlerSet& handlers();

// Sets fn, inner, unit and cost. False, and `*why`, when nothing executes this instruction.
bool bind(Inst* inst, std::string* why);

}  // namespace kerncap::sim::isa

#ifndef KERNCAP_SIM_LEVEL
#define KERNCAP_SIM_LEVEL level_none
#endif

// The family's table, in a file under execute/.
#define KERNCAP_SIM_FAMILY(name, ...)           \
  namespace {                                   \
  const Entry entries_##name[] = {__VA_ARGS__}; \
  }                                             \
  extern const Family family_##name;            \
  const Family family_##name{entries_##name, std::size(entries_##name)};
