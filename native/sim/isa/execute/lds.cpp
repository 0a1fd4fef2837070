// DS reads and writes. Every access is checked against the workgroup's LDS, but reads at addresses that no
// LDS has: the hardware answers with zeros, and Tensile's kernels give lanes such an address to have them.
#include "sim/isa/addresses.h"
#include "sim/isa/lds_banks.h"
#include "sim/isa/transpose.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

// All 64 lanes in range? Then `base + address[l]` may be used without a look at each.
bool all_in_range(const Wave& w, const u32* address, u64 offset, unsigned size) {
  u32 high = 0;
  for (unsigned l = 0; l < kLanes; ++l) high = address[l] > high ? address[l] : high;
  return w.full() && static_cast<u64>(high) + offset + size <= w.lds_bytes;
}

constexpr u64 kNoLds = 65536;
bool nowhere(u64 address) { return address >= kNoLds; }

u32 offset_of(const Inst& i) { return static_cast<u32>(i.imm) | static_cast<u32>(i.imm1) << 8; }

// One element of N dwords a lane, from address + offset to registers dst...
template <unsigned N>
void gather(Wave& w, const u32* address, u64 offset, unsigned dst) {
  if (all_in_range(w, address, offset, 4 * N)) [[likely]] {
    const u8* base = w.lds + offset;
    if constexpr (N == 1) {
      u32* d = w.v[dst].lane;
      for (unsigned l = 0; l < kLanes; ++l) std::memcpy(&d[l], base + address[l], 4);
    } else {
      gather_elements<N>([=](unsigned l) { return base + address[l]; }, &w.v[dst]);
    }
    return;
  }
  for (u64 e = w.exec(); e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    if (nowhere(address[l] + offset)) {
      for (unsigned k = 0; k < N; ++k) w.v[dst + k].lane[l] = 0;
      continue;
    }
    const u64 from = lds_address(w, address[l] + offset, 4 * N, static_cast<int>(l));
    for (unsigned k = 0; k < N; ++k)
      std::memcpy(&w.v[dst + k].lane[l], reinterpret_cast<const u8*>(from) + 4 * k, 4);
  }
}
template <unsigned N>
void scatter(Wave& w, const u32* address, u64 offset, unsigned data) {
  if (all_in_range(w, address, offset, 4 * N)) [[likely]] {
    u8* base = w.lds + offset;
    if constexpr (N == 1) {
      const u32* d = w.v[data].lane;
      for (unsigned l = 0; l < kLanes; ++l) std::memcpy(base + address[l], &d[l], 4);
    } else {
      scatter_elements<N>([=](unsigned l) { return base + address[l]; }, &w.v[data]);
    }
    return;
  }
  for (u64 e = w.exec(); e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    const u64 to = lds_address(w, address[l] + offset, 4 * N, static_cast<int>(l));
    for (unsigned k = 0; k < N; ++k)
      std::memcpy(reinterpret_cast<u8*>(to) + 4 * k, &w.v[data + k].lane[l], 4);
  }
}

template <unsigned N>
void read(Wave& w, const Inst& i) {
  const Reg address = w.v[i.addr];  // the destination may be the same register
  charge_lds(w, address.lane, N);
  gather<N>(w, address.lane, offset_of(i), i.dst);
}
template <unsigned N>
void write(Wave& w, const Inst& i) {
  charge_lds(w, w.v[i.addr].lane, N);
  scatter<N>(w, w.v[i.addr].lane, offset_of(i), i.data0);
}

// read2, write2: two elements at two offsets, in elements (or 64 of them with st64).
template <unsigned N, unsigned Stride>
void read2(Wave& w, const Inst& i) {
  const Reg address = w.v[i.addr];
  charge_lds(w, address.lane, N, 2);
  gather<N>(w, address.lane, static_cast<u64>(i.imm) * 4 * N * Stride, i.dst);
  gather<N>(w, address.lane, static_cast<u64>(i.imm1) * 4 * N * Stride, i.dst + N);
}
template <unsigned N, unsigned Stride>
void write2(Wave& w, const Inst& i) {
  charge_lds(w, w.v[i.addr].lane, N, 2);
  scatter<N>(w, w.v[i.addr].lane, static_cast<u64>(i.imm) * 4 * N * Stride, i.data0);
  scatter<N>(w, w.v[i.addr].lane, static_cast<u64>(i.imm1) * 4 * N * Stride, i.data1);
}

// `zero`: where reads from nowhere go.
void lds_lanes(Wave& w, const Inst& i, unsigned size, Addresses* a, u64 zero = 0) {
  const u64 offset = offset_of(i);
  a->exec = w.exec();
  for (u64 e = a->exec; e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    const u64 at = w.v[i.addr].lane[l] + offset;
    a->lane[l] = zero != 0 && nowhere(at) ? zero : lds_address(w, at, size, static_cast<int>(l));
  }
}
template <class T, Fill How>
void read_small(Wave& w, const Inst& i) {
  static constexpr T kZero = 0;
  Addresses a;
  lds_lanes(w, i, sizeof(T), &a, reinterpret_cast<u64>(&kZero));
  charge_lds(w, w.v[i.addr].lane, 1);
  load_small<T, How>(w, a, i.dst);
}
template <class T, bool High>
void write_small(Wave& w, const Inst& i) {
  Addresses a;
  lds_lanes(w, i, sizeof(T), &a);
  charge_lds(w, w.v[i.addr].lane, 1);
  store_small<T, High>(w, a, i.data0);
}

// Lane l at dword l.
constexpr auto kLaneDwords = [] {
  std::array<u32, kLanes> a{};
  for (unsigned l = 0; l < kLanes; ++l) a[l] = 4 * l;
  return a;
}();

// *_addtid: the address is M0[15:0] + offset + 4 * lane.
template <bool Store>
void addtid(Wave& w, const Inst& i) {
  const u64 base = (w.s[kSrcM0] & 0xFFFFu) + offset_of(i);
  charge_lds(w, kLaneDwords.data(), 1);
  for (u64 e = w.exec(); e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    const u64 address = lds_address(w, base + 4 * l, 4, static_cast<int>(l));
    if constexpr (Store)
      std::memcpy(reinterpret_cast<void*>(address), &w.v[i.data0].lane[l], 4);
    else
      std::memcpy(&w.v[i.dst].lane[l], reinterpret_cast<const void*>(address), 4);
  }
}

void nothing(Wave& /*w*/, const Inst& /*i*/) {}

}  // namespace

KERNCAP_SIM_FAMILY(
    lds, {"ds_read_b32", read<1>}, {"ds_read_b64", read<2>}, {"ds_read_b96", read<3>},
    {"ds_read_b128", read<4>}, {"ds_write_b32", write<1>}, {"ds_write_b64", write<2>},
    {"ds_write_b96", write<3>}, {"ds_write_b128", write<4>}, {"ds_read2_b32", read2<1, 1>},
    {"ds_read2_b64", read2<2, 1>}, {"ds_read2st64_b32", read2<1, 64>}, {"ds_read2st64_b64", read2<2, 64>},
    {"ds_write2_b32", write2<1, 1>}, {"ds_write2_b64", write2<2, 1>}, {"ds_write2st64_b32", write2<1, 64>},
    {"ds_write2st64_b64", write2<2, 64>}, {"ds_read_u8", read_small<u8, Fill::dword>},
    {"ds_read_i8", read_small<std::int8_t, Fill::dword>}, {"ds_read_u16", read_small<u16, Fill::dword>},
    {"ds_read_i16", read_small<i16, Fill::dword>}, {"ds_read_u8_d16", read_small<u8, Fill::low_half>},
    {"ds_read_u8_d16_hi", read_small<u8, Fill::high_half>},
    {"ds_read_i8_d16", read_small<std::int8_t, Fill::low_half>},
    {"ds_read_i8_d16_hi", read_small<std::int8_t, Fill::high_half>},
    {"ds_read_u16_d16", read_small<u16, Fill::low_half>},
    {"ds_read_u16_d16_hi", read_small<u16, Fill::high_half>}, {"ds_write_b8", write_small<u8, false>},
    {"ds_write_b8_d16_hi", write_small<u8, true>}, {"ds_write_b16", write_small<u16, false>},
    {"ds_write_b16_d16_hi", write_small<u16, true>}, {"ds_read_addtid_b32", addtid<false>},
    {"ds_write_addtid_b32", addtid<true>}, {"ds_nop", nothing})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
