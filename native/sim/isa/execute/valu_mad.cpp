// The unfused multiply-adds of f32 that gfx90a has (CDNA2 ISA document, V_MAD_F32): the product is rounded,
// then the sum, and denormals are flushed whatever MODE says.
#include "sim/isa/float_ops.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

float flush(float x) { return (as_u32(x) & 0x7F800000u) == 0 ? as_f32(as_u32(x) & 0x80000000u) : x; }

struct Mad {
  static float f(float a, float b, float c) { return flush(flush(flush(a) * flush(b)) + flush(c)); }
};
// Legacy: 0 times anything is 0.
struct MadLegacy {
  static float f(float a, float b, float c) {
    const float x = flush(a), y = flush(b);
    return flush((x == 0.0F || y == 0.0F ? 0.0F : flush(x * y)) + flush(c));
  }
};

}  // namespace

KERNCAP_SIM_FAMILY(valu_mad, {"v_mad_f32", nullptr, bind_f32<Mad, 3>},
                   {"v_mac_f32", nullptr, bind_f32<Mad, 3>}, {"v_madmk_f32", nullptr, bind_f32<Mad, 3>},
                   {"v_madak_f32", nullptr, bind_f32<Mad, 3>},
                   {"v_mad_legacy_f32", nullptr, bind_f32<MadLegacy, 3>})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
