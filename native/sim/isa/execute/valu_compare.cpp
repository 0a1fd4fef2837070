// Comparisons: v_cmp_* sets a lane mask, v_cmpx_* sets EXEC as well. Lanes outside EXEC give 0.
#include "sim/isa/float_ops.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

template <bool X>
void result(Wave& w, const Inst& i, u64 mask) {
  w.set_s64(i.sdst, mask);
  if constexpr (X) w.set_exec(mask);
}

// Relations, on integers and on floats (negated ones are true for NaN).
struct False {
  template <class T>
  static bool f(T, T) {
    return false;
  }
};
struct Lt {
  template <class T>
  static bool f(T a, T b) {
    return a < b;
  }
};
struct Eq {
  template <class T>
  static bool f(T a, T b) {
    return a == b;
  }
};
struct Le {
  template <class T>
  static bool f(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  static bool f(T a, T b) {
    return a > b;
  }
};
struct Ne {
  template <class T>
  static bool f(T a, T b) {
    return a != b;
  }
};
struct Lg {
  template <class T>
  static bool f(T a, T b) {
    return a < b || a > b;
  }
};
struct Ge {
  template <class T>
  static bool f(T a, T b) {
    return a >= b;
  }
};
struct Ordered {
  template <class T>
  static bool f(T a, T b) {
    return a == a && b == b;
  }
};
struct Unordered {
  template <class T>
  static bool f(T a, T b) {
    return a != a || b != b;
  }
};
template <class R>
struct Not {
  template <class T>
  static bool f(T a, T b) {
    return !R::f(a, b);
  }
};
using True = Not<False>;

template <class R, class T, bool X>
void compare32(Wave& w, const Inst& i) {
  Reg t0, t1;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  if constexpr (sizeof(T) == 2) {
    result<X>(w, i, ballot(w, [=](unsigned l) { return R::f(static_cast<T>(a[l]), static_cast<T>(b[l])); }));
  } else {
    result<X>(w, i,
              ballot(w, [=](unsigned l) { return R::f(std::bit_cast<T>(a[l]), std::bit_cast<T>(b[l])); }));
  }
}
template <class R, bool X>
void compare_f32(Wave& w, const Inst& i) {
  Reg t0, t1;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  const SignBits s0 = sign_bits(i, 0), s1 = sign_bits(i, 1);
  result<X>(w, i, ballot(w, [=](unsigned l) { return R::f(as_f32(s0(a[l])), as_f32(s1(b[l]))); }));
}
template <class R, class T, bool X>
void compare64(Wave& w, const Inst& i) {
  Temp64 t0, t1;
  const Lanes64 a = lanes64(w, i.src[0], t0);
  const Lanes64 b = lanes64(w, i.src[1], t1);
  if constexpr (std::is_same_v<T, double>) {
    result<X>(w, i, ballot(w, [&](unsigned l) {
                return R::f(as_f64(modify64(i, 0, a[l])), as_f64(modify64(i, 1, b[l])));
              }));
  } else {
    result<X>(w, i, ballot(w, [=](unsigned l) { return R::f(static_cast<T>(a[l]), static_cast<T>(b[l])); }));
  }
}

template <bool X>
void class_f32(Wave& w, const Inst& i) {
  Reg t0, t1;
  const u32* a = lanes32(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  const SignBits s = sign_bits(i, 0);
  result<X>(w, i, ballot(w, [=](unsigned l) { return (class32(s(a[l])) & b[l]) != 0; }));
}
template <bool X>
void class_f64(Wave& w, const Inst& i) {
  Temp64 t0;
  Reg t1;
  const Lanes64 a = lanes64(w, i.src[0], t0);
  const u32* b = lanes32(w, i.src[1], t1);
  result<X>(w, i, ballot(w, [&](unsigned l) { return (class64(modify64(i, 0, a[l])) & b[l]) != 0; }));
}

}  // namespace

#define INTS(type, T, compare)                                                              \
  {"v_cmp_f_" type, compare<False, T, false>}, {"v_cmpx_f_" type, compare<False, T, true>}, \
      {"v_cmp_lt_" type, compare<Lt, T, false>}, {"v_cmpx_lt_" type, compare<Lt, T, true>}, \
      {"v_cmp_eq_" type, compare<Eq, T, false>}, {"v_cmpx_eq_" type, compare<Eq, T, true>}, \
      {"v_cmp_le_" type, compare<Le, T, false>}, {"v_cmpx_le_" type, compare<Le, T, true>}, \
      {"v_cmp_gt_" type, compare<Gt, T, false>}, {"v_cmpx_gt_" type, compare<Gt, T, true>}, \
      {"v_cmp_ne_" type, compare<Ne, T, false>}, {"v_cmpx_ne_" type, compare<Ne, T, true>}, \
      {"v_cmp_ge_" type, compare<Ge, T, false>}, {"v_cmpx_ge_" type, compare<Ge, T, true>}, \
      {"v_cmp_t_" type, compare<True, T, false>}, {                                         \
    "v_cmpx_t_" type, compare<True, T, true>                                                \
  }
#define F32(name, R) \
  {"v_cmp_" name "_f32", compare_f32<R, false>}, { "v_cmpx_" name "_f32", compare_f32<R, true> }
#define F64(name, R) \
  {"v_cmp_" name "_f64", compare64<R, double, false>}, { "v_cmpx_" name "_f64", compare64<R, double, true> }
#define FLOATS(F)                                                                                  \
  F("f", False), F("lt", Lt), F("eq", Eq), F("le", Le), F("gt", Gt), F("lg", Lg), F("ge", Ge),     \
      F("o", Ordered), F("u", Unordered), F("nge", Not<Ge>), F("nlg", Not<Lg>), F("ngt", Not<Gt>), \
      F("nle", Not<Le>), F("neq", Not<Eq>), F("nlt", Not<Lt>), F("tru", True)

KERNCAP_SIM_FAMILY(valu_compare, INTS("i32", i32, compare32), INTS("u32", u32, compare32),
                   INTS("i16", i16, compare32), INTS("u16", u16, compare32), INTS("i64", i64, compare64),
                   INTS("u64", u64, compare64), FLOATS(F32), FLOATS(F64),
                   {"v_cmp_class_f32", class_f32<false>}, {"v_cmpx_class_f32", class_f32<true>},
                   {"v_cmp_class_f64", class_f64<false>}, {"v_cmpx_class_f64", class_f64<true>})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
