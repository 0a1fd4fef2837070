// f32 reciprocals, roots, exponentials and circular functions. On the device these are tables good to 1 ulp,
// whose low bits are not published; here the value is computed in double and rounded. Results that pass
// through them agree with the device to that tolerance.
#include "sim/isa/float_ops.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

#define OP1(type, expr)                \
  struct type {                        \
    static inline float f(float a) {   \
      const double x = a;              \
      return static_cast<float>(expr); \
    }                                  \
  }

constexpr double kTwoPi = 6.283185307179586476925286766559;

OP1(Rcp, 1.0 / x);
OP1(Rsq, 1.0 / __builtin_sqrt(x));
OP1(Sqrt, __builtin_sqrt(x));
OP1(Exp, __builtin_exp2(x));
OP1(Log, __builtin_log2(x));

// The argument is in revolutions. Whole ones are taken off first, exactly; beyond 256 the device gives the
// value of 0.
double turn(double x) { return (x - __builtin_rint(x)) * kTwoPi; }
OP1(Sin, x - x != 0.0 ? x - x : __builtin_fabs(x) > 256.0 ? 0.0 : __builtin_sin(turn(x)));
OP1(Cos, x - x != 0.0 ? x - x : __builtin_fabs(x) > 256.0 ? 1.0 : __builtin_cos(turn(x)));

}  // namespace

#define B1(name, op) {name, nullptr, bind_f32<op, 1>}
KERNCAP_SIM_FAMILY(valu_transcendental, B1("v_rcp_f32", Rcp), B1("v_rcp_iflag_f32", Rcp),
                   B1("v_rsq_f32", Rsq), B1("v_sqrt_f32", Sqrt), B1("v_exp_f32", Exp),
                   B1("v_exp_legacy_f32", Exp), B1("v_log_f32", Log), B1("v_log_legacy_f32", Log),
                   B1("v_sin_f32", Sin), B1("v_cos_f32", Cos))

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
