// SCRATCH: private memory of a work-item. The address is a VGPR, an SGPR (or none, or both on gfx942) and the
// immediate.
#include "sim/isa/addresses.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

void addresses(Wave& w, const Inst& i, unsigned size, bool write, Addresses* a) {
  a->exec = w.exec();
  const u32 base = static_cast<u32>(i.imm) + (i.saddr != kNoSaddr ? w.s[i.saddr] : 0u);
  const bool vector = i.has(Inst::uses_vaddr);
  const u32* v = w.v[i.addr].lane;
  for (u64 e = a->exec; e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    a->lane[l] = scratch_address(w, base + (vector ? v[l] : 0u), size, l, write);
  }
  charge_vmem(w, *a, size, w.costs->vmem_latency);
}

template <unsigned N>
void load(Wave& w, const Inst& i) {
  Addresses a;
  addresses(w, i, 4 * N, false, &a);
  load_dwords<N>(w, a, i.dst);
}
template <unsigned N>
void store(Wave& w, const Inst& i) {
  Addresses a;
  addresses(w, i, 4 * N, true, &a);
  store_dwords<N>(w, a, i.data0);
}
template <class T, Fill How>
void load_part(Wave& w, const Inst& i) {
  Addresses a;
  addresses(w, i, sizeof(T), false, &a);
  load_small<T, How>(w, a, i.dst);
}
template <class T, bool High>
void store_part(Wave& w, const Inst& i) {
  Addresses a;
  addresses(w, i, sizeof(T), true, &a);
  store_small<T, High>(w, a, i.data0);
}
// To LDS at M0 + imm + 4 * lane.
template <class T>
void load_to_lds(Wave& w, const Inst& i) {
  Addresses a;
  addresses(w, i, sizeof(T), false, &a);
  const u64 base = static_cast<u64>(w.s[kSrcM0] & 0xFFFFFFFCu) + static_cast<u64>(static_cast<i64>(i.imm));
  for (u64 e = a.exec; e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    T x;
    std::memcpy(&x, reinterpret_cast<const void*>(a.lane[l]), sizeof x);
    const u32 value = static_cast<u32>(static_cast<i32>(x));
    std::memcpy(reinterpret_cast<void*>(lds_address(w, base + 4 * l, 4, static_cast<int>(l))), &value, 4);
  }
}

using i8 = std::int8_t;

}  // namespace

KERNCAP_SIM_FAMILY(
    scratch, {"scratch_load_dword", load<1>}, {"scratch_load_dwordx2", load<2>},
    {"scratch_load_dwordx3", load<3>}, {"scratch_load_dwordx4", load<4>}, {"scratch_store_dword", store<1>},
    {"scratch_store_dwordx2", store<2>}, {"scratch_store_dwordx3", store<3>},
    {"scratch_store_dwordx4", store<4>}, {"scratch_load_ubyte", load_part<u8, Fill::dword>},
    {"scratch_load_sbyte", load_part<i8, Fill::dword>}, {"scratch_load_ushort", load_part<u16, Fill::dword>},
    {"scratch_load_sshort", load_part<i16, Fill::dword>},
    {"scratch_load_ubyte_d16", load_part<u8, Fill::low_half>},
    {"scratch_load_ubyte_d16_hi", load_part<u8, Fill::high_half>},
    {"scratch_load_sbyte_d16", load_part<i8, Fill::low_half>},
    {"scratch_load_sbyte_d16_hi", load_part<i8, Fill::high_half>},
    {"scratch_load_short_d16", load_part<u16, Fill::low_half>},
    {"scratch_load_short_d16_hi", load_part<u16, Fill::high_half>},
    {"scratch_store_byte", store_part<u8, false>}, {"scratch_store_byte_d16_hi", store_part<u8, true>},
    {"scratch_store_short", store_part<u16, false>}, {"scratch_store_short_d16_hi", store_part<u16, true>},
    {"scratch_load_lds_dword", load_to_lds<u32>}, {"scratch_load_lds_ubyte", load_to_lds<u8>},
    {"scratch_load_lds_sbyte", load_to_lds<i8>}, {"scratch_load_lds_ushort", load_to_lds<u16>},
    {"scratch_load_lds_sshort", load_to_lds<i16>})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
