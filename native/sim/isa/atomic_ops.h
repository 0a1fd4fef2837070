// The arithmetic of memory atomics, shared by DS, FLAT, GLOBAL and MUBUF: Op::f(old, data) -> new value.
#pragma once

#include "sim/isa/float_ops.h"
#include "sim/isa/half.h"

namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL::atomic {

template <class T>
using Signed = std::make_signed_t<T>;

#define KERNCAP_ATOMIC(name, expression) \
  struct name {                          \
    template <class T>                   \
    static T f(T old, T data) {          \
      return static_cast<T>(expression); \
    }                                    \
  }
KERNCAP_ATOMIC(Swap, ((void)old, data));
KERNCAP_ATOMIC(Add, old + data);
KERNCAP_ATOMIC(Sub, old - data);
KERNCAP_ATOMIC(Rsub, data - old);
KERNCAP_ATOMIC(Smin, static_cast<Signed<T>>(data) < static_cast<Signed<T>>(old) ? data : old);
KERNCAP_ATOMIC(Smax, static_cast<Signed<T>>(data) > static_cast<Signed<T>>(old) ? data : old);
KERNCAP_ATOMIC(Umin, data < old ? data : old);
KERNCAP_ATOMIC(Umax, data > old ? data : old);
KERNCAP_ATOMIC(And, old& data);
KERNCAP_ATOMIC(Or, old | data);
KERNCAP_ATOMIC(Xor, old ^ data);
KERNCAP_ATOMIC(Inc, old >= data ? 0 : old + 1);
KERNCAP_ATOMIC(Dec, old == 0 || old > data ? data : old - 1);
#undef KERNCAP_ATOMIC

struct AddF32 {
  static u32 f(u32 old, u32 data) { return as_u32(as_f32(old) + as_f32(data)); }
};
struct MinF32 {
  static u32 f(u32 old, u32 data) { return as_u32(min32(as_f32(old), as_f32(data))); }
};
struct MaxF32 {
  static u32 f(u32 old, u32 data) { return as_u32(max32(as_f32(old), as_f32(data))); }
};
struct AddF64 {
  static u64 f(u64 old, u64 data) { return as_u64(as_f64(old) + as_f64(data)); }
};
struct MinF64 {
  static u64 f(u64 old, u64 data) { return as_u64(min64(as_f64(old), as_f64(data))); }
};
struct MaxF64 {
  static u64 f(u64 old, u64 data) { return as_u64(max64(as_f64(old), as_f64(data))); }
};
struct PkAddF16 {
  static u32 f(u32 old, u32 data) {
    const u32 lo = f32_to_f16(f16_to_f32(old & 0xFFFF) + f16_to_f32(data & 0xFFFF));
    return lo | f32_to_f16(f16_to_f32(old >> 16) + f16_to_f32(data >> 16)) << 16;
  }
};
static inline u32 f32_to_bf16(float x) {
  const u32 bits = as_u32(x);
  if (x != x) return (bits >> 16 | 0x40) & 0xFFFF;
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
struct PkAddBf16 {
  static u32 f(u32 old, u32 data) {
    const u32 lo = f32_to_bf16(as_f32(old << 16) + as_f32(data << 16));
    return lo | f32_to_bf16(as_f32(old & 0xFFFF0000) + as_f32(data & 0xFFFF0000)) << 16;
  }
};

// One value of a register or a register pair.
template <class T>
static inline T read_lane(const Wave& w, unsigned reg, unsigned l) {
  if constexpr (sizeof(T) == 8)
    return static_cast<u64>(w.v[reg + 1].lane[l]) << 32 | w.v[reg].lane[l];
  else
    return w.v[reg].lane[l];
}
template <class T>
static inline void write_lane(Wave& w, unsigned reg, unsigned l, T value) {
  w.v[reg].lane[l] = static_cast<u32>(value);
  if constexpr (sizeof(T) == 8) w.v[reg + 1].lane[l] = static_cast<u32>(value >> 32);
}

// Other host threads may run workgroups that use the same memory, so this is one on the host too. Returns the
// value before. `address` is aligned to T.
template <class T, class F>
static inline T update(u64 address, F f) {
  T* p = reinterpret_cast<T*>(address);
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(p, &old, f(old), true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old;
}

static inline void require_aligned(u64 address, unsigned size, unsigned lane) {
  if (address % size != 0) [[unlikely]]
    throw Trouble{Fault::Kind::misaligned_atomic, static_cast<int>(lane), address, size,
                  "atomics need an address that is a multiple of their size"};
}

}  // namespace kerncap::sim::isa::KERNCAP_SIM_LEVEL::atomic
