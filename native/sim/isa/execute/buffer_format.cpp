// Loads and stores that convert: buffer_*_format_* by the format of the resource, tbuffer_* by that of the
// instruction.
#include <array>

#include "sim/isa/atomic_ops.h"
#include "sim/isa/buffer.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL {
namespace {

// Component widths by data format (ISA document, "Buffer Image Data Format"), from the lowest bit up.
struct Layout {
  unsigned count;
  std::array<u8, 4> bits;
};
constexpr Layout kLayouts[16] = {{0, {}},
                                 {1, {8}},
                                 {1, {16}},
                                 {2, {8, 8}},
                                 {1, {32}},
                                 {2, {16, 16}},
                                 {3, {11, 11, 10}},
                                 {3, {10, 11, 11}},
                                 {4, {2, 10, 10, 10}},
                                 {4, {10, 10, 10, 2}},
                                 {4, {8, 8, 8, 8}},
                                 {2, {32, 32}},
                                 {4, {16, 16, 16, 16}},
                                 {3, {32, 32, 32}},
                                 {4, {32, 32, 32, 32}},
                                 {0, {}}};
enum Number : unsigned { unorm, snorm, uscaled, sscaled, uint, sint, reserved, floating };

bool integer(unsigned number) { return number == uint || number == sint; }

// A float of 5 exponent bits without a sign: the 10- and 11-bit components.
float small_float(u32 raw, unsigned bits) { return f16_to_f32(raw << (15 - bits)); }
u32 to_small_float(float x, unsigned bits) {
  if (x != x) return (1u << bits) - 1;
  return x <= 0 ? 0 : f32_to_f16(x) >> (15 - bits);
}

// What the register gets: a float, or an integer for the integer formats.
u32 unpack(u32 raw, unsigned bits, unsigned number) {
  const i32 s = static_cast<i32>(raw << (32 - bits)) >> (32 - bits);
  const double most = static_cast<double>((1ull << bits) - 1),
               positive = static_cast<double>((1ull << (bits - 1)) - 1);
  switch (number) {
    case unorm:
      return as_u32(static_cast<float>(raw / most));
    case snorm:
      return as_u32(static_cast<float>(std::max(-1.0, s / positive)));
    case uscaled:
      return as_u32(static_cast<float>(raw));
    case sscaled:
      return as_u32(static_cast<float>(s));
    case uint:
      return raw;
    case sint:
      return static_cast<u32>(s);
    default:
      return bits == 32 ? raw : as_u32(bits == 16 ? f16_to_f32(raw) : small_float(raw, bits));
  }
}
u32 pack(u32 value, unsigned bits, unsigned number) {
  const double most = static_cast<double>((1ull << bits) - 1),
               positive = static_cast<double>((1ull << (bits - 1)) - 1);
  const double x = as_f32(value);
  const u32 mask = bits == 32 ? ~0u : (1u << bits) - 1;
  const auto bounded = [x](double low, double high) {
    return x != x ? 0.0 : x < low ? low : x > high ? high : x;
  };
  switch (number) {
    case unorm:
      return static_cast<u32>(std::nearbyint(bounded(0, 1) * most));
    case snorm:
      return static_cast<u32>(static_cast<i64>(std::nearbyint(bounded(-1, 1) * positive))) & mask;
    case uscaled:
      return static_cast<u32>(bounded(0, most));
    case sscaled:
      return static_cast<u32>(static_cast<i64>(bounded(-positive - 1, positive))) & mask;
    case uint:
      return value > mask ? mask : value;
    case sint: {
      const i64 s = static_cast<i32>(value), high = static_cast<i64>(positive);
      return static_cast<u32>(s > high ? high : s < -high - 1 ? -high - 1 : s) & mask;
    }
    default:
      return bits == 32   ? value
             : bits == 16 ? f32_to_f16(as_f32(value))
                          : to_small_float(as_f32(value), bits);
  }
}

struct Format {
  const Layout& layout;
  unsigned number;
  unsigned bytes;  // of a whole element
  std::array<unsigned, 4> select;
};
template <bool Typed>
Format format_of(const Inst& i, const Resource& r) {
  // lower() keeps MTBUF's format field (dfmt, then nfmt) in modifier_word.
  const Layout& layout = kLayouts[Typed ? i.modifier_word & 15u : r.data_format];
  unsigned bits = 0;
  for (const u8 b : layout.bits) bits += b;
  Format f{layout, Typed ? i.modifier_word >> 4 & 7u : r.number_format, bits / 8, {4, 5, 6, 7}};
  if (!Typed)
    for (unsigned c = 0; c < 4; ++c) f.select[c] = r.select[c];
  return f;
}

u32 component(const std::uint8_t* element, const Layout& layout, unsigned c) {
  unsigned at = 0;
  for (unsigned k = 0; k < c; ++k) at += layout.bits[k];
  u64 raw = 0;
  const unsigned first = at / 8, last = (at + layout.bits[c] + 7) / 8;
  std::memcpy(&raw, element + first, last - first);
  raw >>= at % 8;
  return layout.bits[c] == 32 ? static_cast<u32>(raw) : static_cast<u32>(raw) & ((1u << layout.bits[c]) - 1);
}
void set_component(std::uint8_t* element, const Layout& layout, unsigned c, u32 value) {
  unsigned at = 0;
  for (unsigned k = 0; k < c; ++k) at += layout.bits[k];
  const unsigned first = at / 8, last = (at + layout.bits[c] + 7) / 8;
  u64 raw = 0;
  std::memcpy(&raw, element + first, last - first);
  raw |= static_cast<u64>(value) << at % 8;
  std::memcpy(element + first, &raw, last - first);
}

// D16: components are f16 (or 16-bit integers), two a register; `High`: the one component goes to the upper
// half.
template <unsigned N, bool Typed, bool D16, bool High>
void load_format(Wave& w, const Inst& i) {
  const BufferLanes b(w, i);
  const Format f = format_of<Typed>(i, b.resource);
  Reg out[4] = {};
  // A component that is selected but not in the format reads as 0, alpha as 1.
  const u32 one = integer(f.number) ? 1 : as_u32(1.0F);
  if (f.layout.count != 0)
    for_pieces<false>(w, b, 1, f.bytes, [&](unsigned l, unsigned, u64 address) {
      std::uint8_t element[16];
      std::memcpy(element, reinterpret_cast<const void*>(address), f.bytes);
      for (unsigned c = 0; c < N; ++c) {
        const unsigned from = f.select[c];
        if (from == 1) out[c].lane[l] = one;
        if (from < 4) continue;
        if (from - 4 < f.layout.count)
          out[c].lane[l] = unpack(component(element, f.layout, from - 4), f.layout.bits[from - 4], f.number);
        else if (from == 7)
          out[c].lane[l] = one;
      }
    });
  if constexpr (!D16) {
    for (unsigned c = 0; c < N; ++c) write32(w, i.dst + c, [&](unsigned l) { return out[c].lane[l]; });
  } else {
    const auto half = [&](unsigned c, unsigned l) {
      const u32 x = out[c].lane[l];
      return c >= N ? 0 : integer(f.number) ? x & 0xFFFF : f32_to_f16(as_f32(x));
    };
    if constexpr (N == 1) {
      write32(w, i.dst,
              [&](unsigned l) { return fill(half(0, l), High ? Fill::high_half : Fill::low_half); });
    } else {
      for (unsigned c = 0; c < N; c += 2)
        write32(w, i.dst + c / 2, [&](unsigned l) { return half(c, l) | half(c + 1, l) << 16; });
    }
  }
}

template <unsigned N, bool Typed, bool D16, bool High>
void store_format(Wave& w, const Inst& i) {
  const BufferLanes b(w, i);
  const Format f = format_of<Typed>(i, b.resource);
  if (f.layout.count == 0) return;
  for_pieces<true>(w, b, 1, f.bytes, [&](unsigned l, unsigned, u64 address) {
    std::uint8_t element[16] = {};
    for (unsigned c = 0; c < f.layout.count; ++c) {
      // A component the instruction has no register for is 0.
      u32 value = 0;
      if (c < N) {
        if constexpr (D16) {
          const u32 raw = w.v[i.data0 + c / 2].lane[l];
          const u32 half = (High || c & 1u) ? raw >> 16 : raw & 0xFFFF;
          value = f.number == sint   ? static_cast<u32>(static_cast<i32>(static_cast<i16>(half)))
                  : f.number == uint ? half
                                     : as_u32(f16_to_f32(half));
        } else {
          value = w.v[i.data0 + c].lane[l];
        }
      }
      set_component(element, f.layout, c, pack(value, f.layout.bits[c], f.number));
    }
    std::memcpy(reinterpret_cast<void*>(address), element, f.bytes);
  });
}

#define XYZW(p, typed, d16, suffix)                                            \
  {p "_load_format_" suffix "x", load_format<1, typed, d16, false>},           \
      {p "_load_format_" suffix "xy", load_format<2, typed, d16, false>},      \
      {p "_load_format_" suffix "xyz", load_format<3, typed, d16, false>},     \
      {p "_load_format_" suffix "xyzw", load_format<4, typed, d16, false>},    \
      {p "_store_format_" suffix "x", store_format<1, typed, d16, false>},     \
      {p "_store_format_" suffix "xy", store_format<2, typed, d16, false>},    \
      {p "_store_format_" suffix "xyz", store_format<3, typed, d16, false>}, { \
    p "_store_format_" suffix "xyzw", store_format<4, typed, d16, false>       \
  }

}  // namespace

KERNCAP_SIM_FAMILY(buffer_format, XYZW("buffer", false, false, ""), XYZW("buffer", false, true, "d16_"),
                   XYZW("tbuffer", true, false, ""), XYZW("tbuffer", true, true, "d16_"),
                   {"buffer_load_format_d16_hi_x", load_format<1, false, true, true>},
                   {"buffer_store_format_d16_hi_x", store_format<1, false, true, true>})

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL
