// Buffer addressing: the 128-bit resource descriptor (V#), its bounds, and what each lane of a MUBUF or MTBUF
// instruction points to (CDNA2 and CDNA3 ISA documents, "Vector Memory Buffer Instructions").
#pragma once

#include "sim/isa/addresses.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {

struct Resource {
  u64 base;
  u32 stride, records;
  unsigned number_format, data_format, select[4];
  u32 index_stride;
  bool swizzle, add_tid;

  Resource(const Wave& w, unsigned sgpr) {
    const u32* s = &w.s[sgpr];
    base = s[0] | static_cast<u64>(s[1] & 0xFFFF) << 32;
    stride = s[1] >> 16 & 0x3FFF;
    swizzle = s[1] >> 31;
    records = s[2];
    for (unsigned c = 0; c < 4; ++c) select[c] = s[3] >> 3 * c & 7u;
    number_format = s[3] >> 12 & 7u;
    data_format = s[3] >> 15 & 15u;
    index_stride = 8u << (s[3] >> 21 & 3u);
    add_tid = s[3] >> 23 & 1u;
    if (add_tid) stride |= data_format << 14;
  }
  // The private segment buffer of gfx90a's code, or what the code made of it.
  [[nodiscard]] bool is_scratch() const { return (base & kScratchWindow) != 0 && swizzle && add_tid; }
};

// Where the lanes of one instruction point. A lane whose access is out of bounds reads zeros and writes
// nothing.
struct BufferLanes {
  Resource resource;
  u64 exec;
  u32 soffset;
  alignas(64) u32 index[kLanes], offset[kLanes];
  bool indexed;

  BufferLanes(Wave& w, const Inst& i) : resource(w, i.saddr), exec(w.exec()) {
    const unsigned code = i.soffset;
    soffset = code < 128 ? w.s[code] : code <= 192 ? code - 128 : code <= 208 ? 192 - code : 0;
    indexed = i.has(Inst::idxen) || resource.add_tid;
    const u32* v = w.v[i.addr].lane;
    const u32* v_offset = i.has(Inst::idxen) ? w.v[i.addr + 1].lane : v;
    for (unsigned l = 0; l < kLanes; ++l) {
      index[l] = (i.has(Inst::idxen) ? v[l] : 0) + (resource.add_tid ? l : 0);
      offset[l] = (i.has(Inst::offen) ? v_offset[l] : 0) + static_cast<u32>(i.imm);
    }
  }

  // Where in private memory `bytes` at `at` bytes into lane l's element are: the swizzled address says whose
  // bytes they are (dwords of 64 lanes side by side) and how far into them.
  [[nodiscard]] u64 private_address(Wave& w, unsigned l, unsigned at, unsigned bytes, bool write) const {
    const u64 within = static_cast<u64>(offset[l]) + at;
    const u64 wave = kScratchWindow + static_cast<u64>(w.index) * kLanes * w.scratch_lane_bytes;
    const u64 swizzled =
        resource.base - wave + soffset + within / 4 * 4 * kLanes + index[l] * 4ull + within % 4;
    return scratch_address(w, swizzled / (4 * kLanes) * 4 + swizzled % 4, bytes,
                           static_cast<unsigned>(swizzled / 4 % kLanes), write);
  }
  // Whether `bytes` at `at` bytes into lane l's element are inside. A structured buffer (one that is indexed
  // and has a stride) counts records, any other bytes.
  [[nodiscard]] bool inside(unsigned l, unsigned at, unsigned bytes) const {
    if (resource.stride != 0 && indexed) {
      if (index[l] >= resource.records) return false;
      return !resource.swizzle || static_cast<u64>(offset[l]) + at + bytes <= resource.stride;
    }
    return static_cast<u64>(soffset) + offset[l] + at + bytes <= resource.records;
  }
  [[nodiscard]] u64 address(unsigned l, unsigned at) const {
    const u64 within = static_cast<u64>(offset[l]) + at;
    if (!resource.swizzle || resource.stride == 0)
      return resource.base + soffset + static_cast<u64>(index[l]) * resource.stride + within;
    // Swizzled: elements of 4 bytes of index_stride records lie side by side.
    constexpr u64 kElement = 4;
    const u64 high = index[l] / resource.index_stride, low = index[l] % resource.index_stride;
    return resource.base + soffset +
           (high * resource.stride + within / kElement * kElement) * resource.index_stride + low * kElement +
           within % kElement;
  }
};

// Charges and checks an access of `size` bytes in pieces of at most a dword: a multi-dword access may lie
// partly outside of the bounds. Calls f(lane, piece, address) for each piece inside.
template <bool Write, class F>
static inline void for_private_pieces(Wave& w, const BufferLanes& b, unsigned pieces, unsigned bytes, F f) {
  Addresses a;
  a.exec = b.exec;
  for (u64 e = b.exec; e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    for (unsigned k = 0; k < pieces; ++k) {
      const u64 address = b.private_address(w, l, k * bytes, bytes, Write);
      if (k == 0) a.lane[l] = address;
      f(l, k, address);
    }
  }
  charge_vmem(w, a, pieces * bytes, w.costs->scratch_latency);
}
template <bool Write, class F>
static inline void for_pieces(Wave& w, const BufferLanes& b, unsigned pieces, unsigned bytes, F f) {
  if (b.resource.is_scratch()) return for_private_pieces<Write>(w, b, pieces, bytes, f);
  Addresses a;
  a.exec = 0;
  for (u64 e = b.exec; e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    a.lane[l] = b.address(l, 0);
    if (b.inside(l, 0, bytes)) a.exec |= 1ull << l;
  }
  charge_vmem(w, a, pieces * bytes, w.costs->vmem_latency);
  for (u64 e = b.exec; e != 0; e &= e - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(e));
    for (unsigned k = 0; k < pieces; ++k) {
      if (!b.inside(l, k * bytes, bytes)) continue;
      const u64 address = b.address(l, k * bytes);
      w.memory->require(address, bytes, Write, static_cast<int>(l));
      f(l, k, address);
      if constexpr (Write) w.memory->wrote(address, bytes);
    }
  }
}

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
