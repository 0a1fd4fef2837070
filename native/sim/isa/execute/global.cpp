// GLOBAL and FLAT loads and stores.
#include "sim/isa/addresses.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

struct Global {
  static bool find(Wave& w, const Inst& i, unsigned size, bool write, Addresses* a, u64* lanes) {
    global_addresses(w, i, size, write, a);
    *lanes = a->exec;
    return false;
  }
};
struct Flat {
  static bool find(Wave& w, const Inst& i, unsigned size, bool write, Addresses* a, u64* lanes) {
    return flat_addresses(w, i, size, write, a, lanes);
  }
};

template <class Segment, unsigned N>
void load(Wave& w, const Inst& i) {
  Addresses a;
  u64 lanes = 0;
  Segment::find(w, i, 4 * N, false, &a, &lanes);
  charge_vmem(w, a, 4 * N, w.costs->vmem_latency);
  load_dwords<N>(w, a, i.dst);
}
template <class Segment, unsigned N>
void store(Wave& w, const Inst& i) {
  Addresses a;
  u64 lanes = 0;
  Segment::find(w, i, 4 * N, true, &a, &lanes);
  charge_vmem(w, a, 4 * N, w.costs->vmem_latency);
  store_dwords<N>(w, a, i.data0);
  log_store(w, a, 4 * N, lanes);
}
template <class Segment, class T, Fill How>
void load_part(Wave& w, const Inst& i) {
  Addresses a;
  u64 lanes = 0;
  Segment::find(w, i, sizeof(T), false, &a, &lanes);
  charge_vmem(w, a, sizeof(T), w.costs->vmem_latency);
  load_small<T, How>(w, a, i.dst);
}
template <class Segment, class T, bool High>
void store_part(Wave& w, const Inst& i) {
  Addresses a;
  u64 lanes = 0;
  Segment::find(w, i, sizeof(T), true, &a, &lanes);
  charge_vmem(w, a, sizeof(T), w.costs->vmem_latency);
  store_small<T, High>(w, a, i.data0);
  log_store(w, a, sizeof(T), lanes);
}

// global_load_lds_*: to LDS at M0 + imm + 4 * lane (LLVM AMDGPU: M0 holds the wave's base; size of a lane's
// slot 4).
template <class T>
void load_to_lds(Wave& w, const Inst& i) {
  Addresses a;
  global_addresses(w, i, sizeof(T), false, &a);
  charge_vmem(w, a, sizeof(T), w.costs->vmem_latency);
  const u64 base = static_cast<u64>(w.s[kSrcM0] & 0xFFFFFFFCu) + static_cast<u64>(static_cast<i64>(i.imm));
  for (u64 e = a.exec; e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    T x;
    std::memcpy(&x, reinterpret_cast<const void*>(a.contiguous ? a.first + l * sizeof(T) : a.lane[l]),
                sizeof x);
    const u32 value = static_cast<u32>(static_cast<i32>(x));
    std::memcpy(reinterpret_cast<void*>(lds_address(w, base + 4 * l, 4, static_cast<int>(l))), &value, 4);
  }
}

// Caches are coherent here.
void nothing(Wave& /*w*/, const Inst& /*i*/) {}

}  // namespace

#define SEGMENT(p, S)                                                                                      \
  {p "_load_dword", load<S, 1>}, {p "_load_dwordx2", load<S, 2>}, {p "_load_dwordx3", load<S, 3>},         \
      {p "_load_dwordx4", load<S, 4>}, {p "_store_dword", store<S, 1>}, {p "_store_dwordx2", store<S, 2>}, \
      {p "_store_dwordx3", store<S, 3>}, {p "_store_dwordx4", store<S, 4>},                                \
      {p "_load_ubyte", load_part<S, u8, Fill::dword>},                                                    \
      {p "_load_sbyte", load_part<S, std::int8_t, Fill::dword>},                                           \
      {p "_load_ushort", load_part<S, u16, Fill::dword>},                                                  \
      {p "_load_sshort", load_part<S, i16, Fill::dword>},                                                  \
      {p "_load_ubyte_d16", load_part<S, u8, Fill::low_half>},                                             \
      {p "_load_ubyte_d16_hi", load_part<S, u8, Fill::high_half>},                                         \
      {p "_load_sbyte_d16", load_part<S, std::int8_t, Fill::low_half>},                                    \
      {p "_load_sbyte_d16_hi", load_part<S, std::int8_t, Fill::high_half>},                                \
      {p "_load_short_d16", load_part<S, u16, Fill::low_half>},                                            \
      {p "_load_short_d16_hi", load_part<S, u16, Fill::high_half>},                                        \
      {p "_store_byte", store_part<S, u8, false>}, {p "_store_byte_d16_hi", store_part<S, u8, true>},      \
      {p "_store_short", store_part<S, u16, false>}, {                                                     \
    p "_store_short_d16_hi", store_part<S, u16, true>                                                      \
  }

KERNCAP_SIM_FAMILY(global, SEGMENT("global", Global), SEGMENT("flat", Flat), {"buffer_inv", nothing},
                   {"buffer_wbl2", nothing}, {"buffer_invl2", nothing}, {"buffer_wbinvl1", nothing},
                   {"buffer_wbinvl1_vol", nothing}, {"global_load_lds_dword", load_to_lds<u32>},
                   {"global_load_lds_ubyte", load_to_lds<u8>},
                   {"global_load_lds_sbyte", load_to_lds<std::int8_t>},
                   {"global_load_lds_ushort", load_to_lds<u16>}, {"global_load_lds_sshort", load_to_lds<i16>})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
