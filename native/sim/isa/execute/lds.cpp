// DS reads and writes. Every access is checked against the workgroup's LDS.
#include "sim/isa/addresses.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

// The cycles of the compute unit's LDS: bytes over its width, or the busiest bank where lanes collide.
void charge(Wave& w, unsigned bytes_per_lane) {
  const unsigned lanes = static_cast<unsigned>(std::popcount(w.exec()));
  const unsigned cycles = (lanes * bytes_per_lane + w.costs->lds_bytes_per_cycle - 1) / w.costs->lds_bytes_per_cycle;
  w.time.bank_cycles += cycles;
  w.time.lgkm_issue(w.time.now + w.costs->lds_latency + cycles);
}

// All 64 lanes in range? Then `base + address[l]` may be used without a look at each.
bool all_in_range(const Wave& w, const u32* address, u32 offset, unsigned size) {
  u32 high = 0;
  for (unsigned l = 0; l < kLanes; ++l) high = address[l] > high ? address[l] : high;
  return w.full() && static_cast<u64>(high) + offset + size <= w.lds_bytes;
}

template <unsigned N>
void read(Wave& w, const Inst& i) {
  const u32 offset = static_cast<u32>(i.imm) | static_cast<u32>(i.imm1) << 8;
  const u32* address = w.v[i.addr].lane;
  charge(w, 4 * N);
  if (all_in_range(w, address, offset, 4 * N)) [[likely]] {
    const u8* base = w.lds + offset;
    alignas(64) u32 out[N][kLanes];
    for (unsigned l = 0; l < kLanes; ++l) {
      u32 x[N];
      std::memcpy(x, base + address[l], 4 * N);
      for (unsigned k = 0; k < N; ++k) out[k][l] = x[k];
    }
    for (unsigned k = 0; k < N; ++k) std::memcpy(w.v[i.dst + k].lane, out[k], 256);
    return;
  }
  alignas(64) u32 from[kLanes];
  std::memcpy(from, address, sizeof from);
  for (u64 e = w.exec(); e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    u32 x[N];
    std::memcpy(x, reinterpret_cast<const void*>(lds_address(w, static_cast<u64>(from[l]) + offset, 4 * N, static_cast<int>(l))), 4 * N);
    for (unsigned k = 0; k < N; ++k) w.v[i.dst + k].lane[l] = x[k];
  }
}

template <unsigned N>
void write(Wave& w, const Inst& i) {
  const u32 offset = static_cast<u32>(i.imm) | static_cast<u32>(i.imm1) << 8;
  const u32* address = w.v[i.addr].lane;
  charge(w, 4 * N);
  if (all_in_range(w, address, offset, 4 * N)) [[likely]] {
    u8* base = w.lds + offset;
    for (unsigned l = 0; l < kLanes; ++l) {
      u32 x[N];
      for (unsigned k = 0; k < N; ++k) x[k] = w.v[i.data0 + k].lane[l];
      std::memcpy(base + address[l], x, 4 * N);
    }
    return;
  }
  for (u64 e = w.exec(); e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    u32 x[N];
    for (unsigned k = 0; k < N; ++k) x[k] = w.v[i.data0 + k].lane[l];
    std::memcpy(reinterpret_cast<void*>(lds_address(w, static_cast<u64>(address[l]) + offset, 4 * N, static_cast<int>(l))), x, 4 * N);
  }
}

// read2, write2: two elements at two offsets, in elements (or 64 of them with st64).
template <unsigned N, unsigned Stride>
void read2(Wave& w, const Inst& i) {
  const u64 o0 = static_cast<u64>(i.imm) * 4 * N * Stride, o1 = static_cast<u64>(i.imm1) * 4 * N * Stride;
  charge(w, 8 * N);
  alignas(64) u32 from[kLanes];
  std::memcpy(from, w.v[i.addr].lane, sizeof from);
  const u32 most = static_cast<u32>(o0 > o1 ? o0 : o1);
  const bool safe = all_in_range(w, from, most, 4 * N);
  for (u64 e = w.exec(); e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    u32 x[2 * N];
    if (safe) {
      std::memcpy(x, w.lds + from[l] + o0, 4 * N);
      std::memcpy(x + N, w.lds + from[l] + o1, 4 * N);
    } else {
      std::memcpy(x, reinterpret_cast<const void*>(lds_address(w, from[l] + o0, 4 * N, static_cast<int>(l))), 4 * N);
      std::memcpy(x + N, reinterpret_cast<const void*>(lds_address(w, from[l] + o1, 4 * N, static_cast<int>(l))), 4 * N);
    }
    for (unsigned k = 0; k < 2 * N; ++k) w.v[i.dst + k].lane[l] = x[k];
  }
}
template <unsigned N, unsigned Stride>
void write2(Wave& w, const Inst& i) {
  const u64 o0 = static_cast<u64>(i.imm) * 4 * N * Stride, o1 = static_cast<u64>(i.imm1) * 4 * N * Stride;
  charge(w, 8 * N);
  const u32* address = w.v[i.addr].lane;
  for (u64 e = w.exec(); e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    u32 x[2 * N];
    for (unsigned k = 0; k < N; ++k) {
      x[k] = w.v[i.data0 + k].lane[l];
      x[N + k] = w.v[i.data1 + k].lane[l];
    }
    std::memcpy(reinterpret_cast<void*>(lds_address(w, address[l] + o0, 4 * N, static_cast<int>(l))), x, 4 * N);
    std::memcpy(reinterpret_cast<void*>(lds_address(w, address[l] + o1, 4 * N, static_cast<int>(l))), x + N, 4 * N);
  }
}

void lds_lanes(Wave& w, const Inst& i, unsigned size, Addresses* a) {
  const u64 offset = static_cast<u64>(i.imm) | static_cast<u64>(i.imm1) << 8;
  a->exec = w.exec();
  for (u64 e = a->exec; e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    a->lane[l] = lds_address(w, w.v[i.addr].lane[l] + offset, size, static_cast<int>(l));
  }
}
template <class T, Fill How>
void read_small(Wave& w, const Inst& i) {
  Addresses a;
  lds_lanes(w, i, sizeof(T), &a);
  charge(w, 4);
  load_small<T, How>(w, a, i.dst);
}
template <class T, bool High>
void write_small(Wave& w, const Inst& i) {
  Addresses a;
  lds_lanes(w, i, sizeof(T), &a);
  charge(w, 4);
  store_small<T, High>(w, a, i.data0);
}

// *_addtid: the address is M0[15:0] + offset + 4 * lane.
template <bool Store>
void addtid(Wave& w, const Inst& i) {
  const u64 base = (w.s[kSrcM0] & 0xFFFFu) + (static_cast<u64>(i.imm) | static_cast<u64>(i.imm1) << 8);
  charge(w, 4);
  for (u64 e = w.exec(); e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    const u64 address = lds_address(w, base + 4 * l, 4, static_cast<int>(l));
    if constexpr (Store) std::memcpy(reinterpret_cast<void*>(address), &w.v[i.data0].lane[l], 4);
    else std::memcpy(&w.v[i.dst].lane[l], reinterpret_cast<const void*>(address), 4);
  }
}

void nothing(Wave& /*w*/, const Inst& /*i*/) {}

}  // namespace

KERNCAP_SIM_FAMILY(
    lds, {"ds_read_b32", read<1>}, {"ds_read_b64", read<2>}, {"ds_read_b96", read<3>}, {"ds_read_b128", read<4>},
    {"ds_write_b32", write<1>}, {"ds_write_b64", write<2>}, {"ds_write_b96", write<3>}, {"ds_write_b128", write<4>},
    {"ds_read2_b32", read2<1, 1>}, {"ds_read2_b64", read2<2, 1>}, {"ds_read2st64_b32", read2<1, 64>},
    {"ds_read2st64_b64", read2<2, 64>}, {"ds_write2_b32", write2<1, 1>}, {"ds_write2_b64", write2<2, 1>},
    {"ds_write2st64_b32", write2<1, 64>}, {"ds_write2st64_b64", write2<2, 64>},
    {"ds_read_u8", read_small<u8, Fill::dword>}, {"ds_read_i8", read_small<std::int8_t, Fill::dword>},
    {"ds_read_u16", read_small<u16, Fill::dword>}, {"ds_read_i16", read_small<i16, Fill::dword>},
    {"ds_read_u8_d16", read_small<u8, Fill::low_half>}, {"ds_read_u8_d16_hi", read_small<u8, Fill::high_half>},
    {"ds_read_i8_d16", read_small<std::int8_t, Fill::low_half>},
    {"ds_read_i8_d16_hi", read_small<std::int8_t, Fill::high_half>},
    {"ds_read_u16_d16", read_small<u16, Fill::low_half>}, {"ds_read_u16_d16_hi", read_small<u16, Fill::high_half>},
    {"ds_write_b8", write_small<u8, false>}, {"ds_write_b8_d16_hi", write_small<u8, true>},
    {"ds_write_b16", write_small<u16, false>}, {"ds_write_b16_d16_hi", write_small<u16, true>},
    {"ds_read_addtid_b32", addtid<false>}, {"ds_write_addtid_b32", addtid<true>}, {"ds_nop", nothing})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
