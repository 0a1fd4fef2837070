// The run loop, and all families of this level in one table.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "sim/isa/execute.h"
#include "sim/isa/families.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {

#define X(name) extern const Family family_##name;
KERNCAP_SIM_FAMILIES(X)
#undef X

namespace {

#if defined(__x86_64__)
// MXCSR for one instruction under a MODE that is not the plain one. Denormals: MODE has a bit for inputs and
// one for outputs, like DAZ and FTZ.
void set_float_mode(std::uint32_t mode, FloatClass float_class) {
  const unsigned shift = float_class == FloatClass::f64_f16 ? 2 : 0;
  static constexpr unsigned kRound[] = {_MM_ROUND_NEAREST, _MM_ROUND_UP, _MM_ROUND_DOWN,
                                        _MM_ROUND_TOWARD_ZERO};
  unsigned csr = 0x1F80u | kRound[mode >> shift & 3u];
  const unsigned denormal = mode >> (4 + shift) & 3u;
  if ((denormal & 1u) == 0) csr |= 0x0040u;  // DAZ: inputs flushed
  if ((denormal & 2u) == 0) csr |= 0x8000u;  // FTZ: outputs flushed
  _mm_setcsr(csr);
}
constexpr unsigned kPlainCsr = 0x1F80;
#endif

// s_set_gpr_idx_on: M0[7:0] is added to the VGPR numbers of the operands that the mode names.
void index_registers(const Wave& w, Inst& i) {
  const unsigned index = w.s[kSrcM0] & 0xFFu;
  for (unsigned n = 0; n < 3; ++n)
    if ((w.gpr_index_mode >> n & 1u) != 0 && i.src[n].kind == Operand::Kind::vgpr)
      i.src[n].reg = static_cast<std::uint16_t>(i.src[n].reg + index);
  if ((w.gpr_index_mode & 8u) != 0 && !i.scalar_dst) i.dst = static_cast<std::uint16_t>(i.dst + index);
  for (const Operand& o : i.src)
    if (o.kind == Operand::Kind::vgpr && o.reg >= kTempVgpr)
      throw Trouble{Fault::Kind::illegal_instruction, -1, 0, 0,
                    "an indexed VGPR is beyond the register file"};
  if (!i.scalar_dst && i.dst >= kTempVgpr - 4u)
    throw Trouble{Fault::Kind::illegal_instruction, -1, 0, 0, "an indexed VGPR is beyond the register file"};
}

void run_special(Wave& w) {
  while (w.budget > 0 && w.special_mode) {
    const Inst* i = w.pc;
    w.pc = i + 1;
    --w.budget;
    w.time.now += i->cost;
    w.time.busy[static_cast<unsigned>(i->unit)] += i->cost;
#if defined(__x86_64__)
    if (i->float_class != FloatClass::none) set_float_mode(w.mode, i->float_class);
#endif
    if (w.gpr_index_mode != 0 && i->unit == Unit::valu) {
      Inst indexed = *i;
      index_registers(w, indexed);
      indexed.fn(w, indexed);
    } else {
      i->fn(w, *i);
    }
#if defined(__x86_64__)
    _mm_setcsr(kPlainCsr);
#endif
  }
}

// The program around the simulator may have changed its own floating-point environment (flush to zero,
// unmasked exceptions): waves run in the plain one, and it gets its own back.
class PlainFloat {
 public:
#if defined(__x86_64__)
  PlainFloat() : saved_(_mm_getcsr()) { _mm_setcsr(kPlainCsr); }
  ~PlainFloat() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#endif
};

void run(Wave& w) {
  const PlainFloat plain;
  while (w.budget > 0) {
    if (w.special_mode) {
      run_special(w);
      continue;
    }
    do {
      const Inst* i = w.pc;
      w.pc = i + 1;
      --w.budget;
      w.time.now += i->cost;
      w.time.busy[static_cast<unsigned>(i->unit)] += i->cost;
      i->fn(w, *i);
    } while (w.budget > 0 && !w.special_mode);
  }
}

// Filled once and never destroyed: queues still decode while a program that returned with dispatches in
// flight ends.
union KeptHandlers {
  HandlerSet set;
  KeptHandlers() : set{} {
#if defined(__AVX2__)
    set.level = "x86-64-v3";
#else
    set.level = "x86-64";
#endif
    const auto add = [this](const Family& family) {
      for (std::size_t n = 0; n < family.count; ++n)
        set.by_name.emplace(family.entries[n].mnemonic, family.entries[n]);
    };
#define X(name) add(family_##name);
    KERNCAP_SIM_FAMILIES(X)
#undef X
    set.run = run;
  }
  ~KeptHandlers() {}
};

}  // namespace

const HandlerSet& handler_set() {
  static const KeptHandlers kept;
  return kept.set;
}

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
