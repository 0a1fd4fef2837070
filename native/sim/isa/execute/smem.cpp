// SMEM: scalar loads, and clocks. Caches are coherent here, so their maintenance does nothing.
#include "sim/device/cost.h"
#include "sim/isa/lanes.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

u64 offset_of(const Wave& w, const Inst& i) {
  u64 offset = static_cast<u64>(static_cast<i64>(i.imm));
  if (i.soffset != 127) offset += i.soffset == 125 ? 0 : w.s[i.soffset];
  return offset;
}

template <unsigned N>
void load(Wave& w, const Inst& i) {
  const u64 address = (w.s64(i.saddr) + offset_of(w, i)) & ~3ull;
  w.memory->require(address, 4 * N, false, -1);
  std::memcpy(&w.s[i.dst], reinterpret_cast<const void*>(address), 4 * N);
  w.time.lgkm_issue(w.time.now + w.costs->smem_latency);
}

// A buffer resource in SGPRs: base in 47:0, stride in 61:48, number of records in the third dword. Scalar
// buffer loads clamp by the records times the stride (or bytes where the stride is 0) and read 0 beyond.
template <unsigned N>
void buffer_load(Wave& w, const Inst& i) {
  const u64 low = w.s64(i.saddr);
  const u64 base = low & 0xFFFFFFFFFFFFull;
  const u64 stride = low >> 48 & 0x3FFFu;
  const u64 size = stride == 0 ? w.s[i.saddr + 2] : stride * w.s[i.saddr + 2];
  const u64 offset = offset_of(w, i) & ~3ull;
  u32 result[N] = {};
  for (unsigned n = 0; n < N; ++n) {
    if (offset + 4 * n + 4 > size) continue;
    const u64 address = (base + offset + 4 * n) & ~3ull;
    w.memory->require(address, 4, false, -1);
    std::memcpy(&result[n], reinterpret_cast<const void*>(address), 4);
  }
  std::memcpy(&w.s[i.dst], result, 4 * N);
  w.time.lgkm_issue(w.time.now + w.costs->smem_latency);
}

template <unsigned N>
void store(Wave& w, const Inst& i) {
  const u64 address = (w.s64(i.saddr) + offset_of(w, i)) & ~3ull;
  w.memory->require(address, 4 * N, true, -1);
  std::memcpy(reinterpret_cast<void*>(address), &w.s[i.dst], 4 * N);
  w.memory->wrote(address, 4 * N);
}

void clock_value(Wave& w, const Inst& i) {
  w.set_s64(i.dst, w.time.now);
  w.time.lgkm_issue(w.time.now + 40);
}
void nothing(Wave& /*w*/, const Inst& /*i*/) {}

// A destination tuple may not run over VCC.
template <Handler H, unsigned N>
Handler fits(Inst& i) {
  return i.dst + N <= 108 ? H : nullptr;
}
#define LOAD(name, f, n) {name, nullptr, fits<f<n>, n>}

}  // namespace

KERNCAP_SIM_FAMILY(smem, LOAD("s_load_dword", load, 1), LOAD("s_load_dwordx2", load, 2),
                   LOAD("s_load_dwordx4", load, 4), LOAD("s_load_dwordx8", load, 8),
                   LOAD("s_load_dwordx16", load, 16), LOAD("s_buffer_load_dword", buffer_load, 1),
                   LOAD("s_buffer_load_dwordx2", buffer_load, 2),
                   LOAD("s_buffer_load_dwordx4", buffer_load, 4),
                   LOAD("s_buffer_load_dwordx8", buffer_load, 8),
                   LOAD("s_buffer_load_dwordx16", buffer_load, 16), LOAD("s_store_dword", store, 1),
                   LOAD("s_store_dwordx2", store, 2), LOAD("s_store_dwordx4", store, 4),
                   {"s_memtime", clock_value}, {"s_memrealtime", clock_value}, {"s_dcache_inv", nothing},
                   {"s_dcache_wb", nothing}, {"s_dcache_inv_vol", nothing}, {"s_dcache_wb_vol", nothing})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
