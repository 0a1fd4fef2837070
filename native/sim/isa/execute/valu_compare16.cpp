// Comparisons and classes of f16: the relations of valu_compare.cpp on f16 operands.
#include "sim/isa/half.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

// Bits: less, equal, greater, unordered; a relation is the set of those that make it true.
constexpr unsigned kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8;

template <bool X>
void result(Wave& w, const Inst& i, u64 mask) {
  w.set_s64(i.sdst, mask);
  if constexpr (X) w.set_exec(mask);
}

template <unsigned Relation, bool X>
void compare_f16(Wave& w, const Inst& i) {
  Floats s[2];
  for (unsigned n = 0; n < 2; ++n) {
    Reg t;
    unpack_f16(lanes32(w, i.src[n], t), 0, s[n]);
    modify_f16(s[n], i.abs >> n & 1u, i.neg >> n & 1u);
  }
  result<X>(w, i, ballot(w, [&](unsigned l) {
              const float a = s[0].lane[l], b = s[1].lane[l];
              const unsigned is = a < b ? kLess : a == b ? kEqual : a > b ? kGreater : kUnordered;
              return (is & Relation) != 0;
            }));
}

// The bits of v_cmp_class: sNaN, qNaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf.
u32 class16(u32 h) {
  const u32 rest = h & 0x7FFF;
  const bool negative = h >> 15 & 1;
  if (rest > 0x7C00) return rest & 0x200 ? 2 : 1;
  const unsigned rank = rest == 0x7C00 ? 3 : rest >= 0x400 ? 2 : rest > 0 ? 1 : 0;
  return negative ? 1u << (5 - rank) : 1u << (6 + rank);
}
template <bool X>
void class_f16(Wave& w, const Inst& i) {
  Reg t0, t1;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  const u32 clear = i.abs & 1u ? 0x8000 : 0, flip = i.neg & 1u ? 0x8000 : 0;
  result<X>(w, i,
            ballot(w, [=](unsigned l) { return (class16(((a[l] & 0xFFFF) & ~clear) ^ flip) & b[l]) != 0; }));
}

#define F16(name, relation) \
  {"v_cmp_" name "_f16", compare_f16<relation, false>}, { "v_cmpx_" name "_f16", compare_f16<relation, true> }

}  // namespace

KERNCAP_SIM_FAMILY(valu_compare16, F16("f", 0), F16("lt", kLess), F16("eq", kEqual),
                   F16("le", kLess | kEqual), F16("gt", kGreater), F16("lg", kLess | kGreater),
                   F16("ge", kGreater | kEqual), F16("o", kLess | kEqual | kGreater), F16("u", kUnordered),
                   F16("nge", kUnordered | kLess), F16("nlg", kUnordered | kEqual),
                   F16("ngt", kUnordered | kLess | kEqual), F16("nle", kUnordered | kGreater),
                   F16("neq", kUnordered | kLess | kGreater), F16("nlt", kUnordered | kGreater | kEqual),
                   F16("tru", 15), {"v_cmp_class_f16", class_f16<false>},
                   {"v_cmpx_class_f16", class_f16<true>})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
