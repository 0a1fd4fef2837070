// Atomics of FLAT and GLOBAL. With sc0 the value before is returned. Lanes act one after the other, in lane
// order.
#include "sim/isa/addresses.h"
#include "sim/isa/atomic_ops.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

using namespace atomic;

template <bool Flat, class T, class F>
void for_lanes(Wave& w, const Inst& i, F f) {
  Addresses a;
  u64 lanes = w.exec();
  if constexpr (Flat)
    flat_addresses(w, i, sizeof(T), true, &a, &lanes);
  else
    global_addresses(w, i, sizeof(T), true, &a);
  charge_vmem(w, a, sizeof(T), w.costs->vmem_latency);
  const bool returns = i.has(Inst::sc0);
  for (u64 e = a.exec; e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    const u64 address = a.contiguous ? a.first + l * sizeof(T) : a.lane[l];
    require_aligned(address, sizeof(T), l);
    const T old = f(l, address);
    if (returns) write_lane<T>(w, i.dst, l, old);
  }
  log_store(w, a, sizeof(T), lanes);
}

template <bool Flat, class T, class Op>
void atomic_op(Wave& w, const Inst& i) {
  for_lanes<Flat, T>(w, i, [&](unsigned l, u64 address) {
    const T data = read_lane<T>(w, i.data0, l);
    return update<T>(address, [data](T old) { return Op::f(old, data); });
  });
}
// The new value comes first, then what memory is compared with.
template <bool Flat, class T>
void cmpswap(Wave& w, const Inst& i) {
  for_lanes<Flat, T>(w, i, [&](unsigned l, u64 address) {
    const T data = read_lane<T>(w, i.data0, l), compare = read_lane<T>(w, i.data0 + sizeof(T) / 4, l);
    return update<T>(address, [=](T old) { return old == compare ? data : old; });
  });
}

#define BOTH(name, handler32, handler64) \
  {name, handler32}, { name "_x2", handler64 }
#define INT(p, flat, name, Op) BOTH(p "_atomic_" name, (atomic_op<flat, u32, Op>), (atomic_op<flat, u64, Op>))
#define SEGMENT(p, flat)                                                                  \
  INT(p, flat, "swap", Swap), INT(p, flat, "add", Add), INT(p, flat, "sub", Sub),         \
      INT(p, flat, "smin", Smin), INT(p, flat, "umin", Umin), INT(p, flat, "smax", Smax), \
      INT(p, flat, "umax", Umax), INT(p, flat, "and", And), INT(p, flat, "or", Or),       \
      INT(p, flat, "xor", Xor), INT(p, flat, "inc", Inc), INT(p, flat, "dec", Dec),       \
      BOTH(p "_atomic_cmpswap", (cmpswap<flat, u32>), (cmpswap<flat, u64>)),              \
      {p "_atomic_add_f32", atomic_op<flat, u32, AddF32>},                                \
      {p "_atomic_pk_add_f16", atomic_op<flat, u32, PkAddF16>},                           \
      {p "_atomic_pk_add_bf16", atomic_op<flat, u32, PkAddBf16>},                         \
      {p "_atomic_add_f64", atomic_op<flat, u64, AddF64>},                                \
      {p "_atomic_min_f64", atomic_op<flat, u64, MinF64>}, {                              \
    p "_atomic_max_f64", atomic_op<flat, u64, MaxF64>                                     \
  }

}  // namespace

KERNCAP_SIM_FAMILY(atomics, SEGMENT("flat", true), SEGMENT("global", false))

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
