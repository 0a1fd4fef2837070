// The compiler's amdgcn builtins that the kernels use, for the host (see host_grid.h).
#pragma once

#define __builtin_amdgcn_fence(order, scope) ((void)0)
#define __builtin_amdgcn_s_sleep(n) ((void)0)
#define __builtin_amdgcn_sdot4(a, b, c, clamp) host_grid::sdot4(a, b, c)
#define __builtin_amdgcn_fdot2(a, b, c, clamp) host_grid::fdot2(a, b, c)
#define __builtin_amdgcn_global_atomic_fadd_v2f16(p, v) host_grid::add_v2f16((half2_t*)(p), v)
#define __builtin_amdgcn_rsqf(x) (1.0f / __builtin_sqrtf(x))
#define __builtin_amdgcn_exp2f(x) __builtin_exp2f(x)
#define __builtin_amdgcn_fractf(x) ((x) - __builtin_floorf(x))
#define __builtin_amdgcn_sinf(x) ((float)__builtin_sin(6.283185307179586 * (double)(x)))
#define __builtin_amdgcn_cosf(x) ((float)__builtin_cos(6.283185307179586 * (double)(x)))

namespace host_grid {

// v_dot4_i32_i8: the exact sum of four signed byte products and c, modulo 2^32.
inline int sdot4(int a, int b, int c) {
  unsigned sum = static_cast<unsigned>(c);
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<unsigned>(static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i));
  return static_cast<int>(sum);
}

// v_dot2_f32_f16 on values whose products and sums are exact in f32 (the tests' inputs are).
inline float fdot2(half2_t a, half2_t b, float c) {
  return static_cast<float>(static_cast<double>(a.x) * static_cast<double>(b.x) +
                            static_cast<double>(a.y) * static_cast<double>(b.y) + static_cast<double>(c));
}

inline void add_v2f16(half2_t* p, half2_t v) { *p = *p + v; }

inline unsigned mbcnt(unsigned mask, unsigned base, int first) {
  for (int l = first; l < lane() && l < first + 32; l++) base += mask >> (l - first) & 1;
  return base;
}

inline u64 ballot(bool p) {
  Lanes lanes = exchange(p);
  u64 mask = 0;
  for (int l = 0; l < 64; l++) mask |= static_cast<u64>(lanes.get<bool>(l)) << l;
  return mask;
}

// The lane that a DPP control reads for `l`, or -1 where there is none (ISA manual, "DPP_CTRL").
inline int dpp_source(int ctrl, int l) {
  int row = l & ~15, in_row = l & 15;
  auto within_row = [&](int i) { return i < 0 || i > 15 ? -1 : row + i; };
  if (ctrl < 0x100) return (l & ~3) + (ctrl >> (l & 3) * 2 & 3);                 // quad_perm
  if (ctrl >= 0x101 && ctrl <= 0x10f) return within_row(in_row + (ctrl & 15));   // row_shl
  if (ctrl >= 0x111 && ctrl <= 0x11f) return within_row(in_row - (ctrl & 15));   // row_shr
  if (ctrl >= 0x121 && ctrl <= 0x12f) return row + (in_row - (ctrl & 15) & 15);  // row_ror
  switch (ctrl) {
    case 0x130:
      return l + 1 > 63 ? -1 : l + 1;  // wave_shl:1
    case 0x134:
      return l + 1 & 63;  // wave_rol:1
    case 0x138:
      return l - 1;  // wave_shr:1
    case 0x13c:
      return l - 1 & 63;  // wave_ror:1
    case 0x140:
      return row + 15 - in_row;  // row_mirror
    case 0x141:
      return (l & ~7) + 7 - (l & 7);  // row_half_mirror
    case 0x142:
      return row == 0 ? -1 : row - 1;  // row_bcast:15
    case 0x143:
      return l < 32 ? -1 : 31;  // row_bcast:31
  }
  dprintf(2, "host grid: DPP control 0x%x\n", ctrl);
  __builtin_abort();
}

inline int dpp(int old, int src, int ctrl, int row_mask, int bank_mask, bool bound_ctrl) {
  Lanes lanes = exchange(src);
  int l = lane(), from = dpp_source(ctrl, l);
  if (!(row_mask >> l / 16 & 1) || !(bank_mask >> l / 4 % 4 & 1)) return old;
  if (lanes.active(from)) return lanes.get<int>(from);
  return bound_ctrl ? 0 : old;
}

inline int swizzle(int v, int pattern) {
  Lanes lanes = exchange(v);
  int l = lane();
  if (pattern & 0x8000) return lanes.get<int>((l & ~3) + (pattern >> (l & 3) * 2 & 3));
  int in = l & 31;
  return lanes.get<int>((l & 32) | (((in & pattern) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31)));
}

inline int first_lane(int v) {
  Lanes lanes = exchange(v);
  for (int l = 0; l < 64; l++)
    if (lanes.active(l)) return lanes.get<int>(l);
  return 0;
}

// D = A x B + C for M rows, N columns and depth K, A and B held as (lane, element) by their
// definition: element e of lane l is A[l % M][e + E * (l / M)], E elements a lane.
template <int M, class Operand, class Wide, class Accumulator, class Convert, class Row>
inline Accumulator matrix(Operand a, Operand b, Accumulator c, int per_lane, int results, Convert convert,
                          Row row) {
  struct Both {
    Operand a, b;
  };

  Lanes lanes = exchange(Both{a, b});
  int column = lane() % M, group = lane() / M, depth = per_lane * (64 / M);
  for (int r = 0; r < results; r++) {
    int i = row(r, group);
    Wide sum = static_cast<Wide>(c[r]);
    for (int k = 0; k < depth; k++) {
      Both left = lanes.get<Both>(i + M * (k / per_lane)),
           right = lanes.get<Both>(column + M * (k / per_lane));
      sum += static_cast<Wide>(convert(left.a, k % per_lane)) *
             static_cast<Wide>(convert(right.b, k % per_lane));
    }
    c[r] = static_cast<decltype(c[0] + 0)>(sum);
  }
  return c;
}

// OCP-free "FNUZ" e4m3 of gfx942: bias 8, no infinities, 0x80 is the only NaN.
inline float fp8_value(unsigned char bits) {
  if (bits == 0x80) return __builtin_nanf("");
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float magnitude = exponent ? __builtin_ldexpf(static_cast<float>(8 + mantissa), exponent - 8 - 3)
                             : __builtin_ldexpf(static_cast<float>(mantissa), 1 - 8 - 3);
  return bits & 0x80 ? -magnitude : magnitude;
}

inline float bf16_value(short bits) {
  return __builtin_bit_cast(float, static_cast<unsigned>(static_cast<ushort>(bits)) << 16);
}

inline int rows_16(int r, int group) { return 4 * group + r; }

inline int rows_32(int r, int group) { return 8 * (r / 4) + 4 * group + r % 4; }

inline int rows_f64(int r, int group) { return 4 * r + group; }

template <class V>
inline auto element(V v, int i) {
  return v[i];
}

template <class S>
inline S scalar(S v, int) {
  return v;
}

inline signed char byte(long v, int i) { return static_cast<signed char>(v >> 8 * i); }

inline float fp8(long v, int i) { return fp8_value(static_cast<unsigned char>(v >> 8 * i)); }

inline float bf16(short4_t v, int i) { return bf16_value(v[i]); }

}  // namespace host_grid

// What the host compiler calls to round f32 to bf16 (to nearest even), so that no runtime library is needed.
extern "C" inline __attribute__((used)) __bf16 __truncsfbf2(float value) {
  unsigned bits = __builtin_bit_cast(unsigned, value);
  bool nan = (bits & 0x7fffffff) > 0x7f800000;
  bits = nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
  return __builtin_bit_cast(__bf16, static_cast<ushort>(bits >> 16));
}

inline int __builtin_amdgcn_mbcnt_lo(unsigned mask, unsigned base) { return host_grid::mbcnt(mask, base, 0); }

inline u64 __ballot(bool p) { return host_grid::ballot(p); }

inline int __builtin_amdgcn_ds_bpermute(int address, int v) {
  return host_grid::exchange(v).get<int>(address / 4 & 63);
}

inline int __builtin_amdgcn_ds_swizzle(int v, int pattern) { return host_grid::swizzle(v, pattern); }

inline int __builtin_amdgcn_readfirstlane(int v) { return host_grid::first_lane(v); }

inline int __builtin_amdgcn_readlane(int v, int lane) { return host_grid::exchange(v).get<int>(lane); }

inline int __builtin_amdgcn_update_dpp(int old, int src, int ctrl, int rows, int banks, bool bound_ctrl) {
  return host_grid::dpp(old, src, ctrl, rows, banks, bound_ctrl);
}

inline float4_t __builtin_amdgcn_mfma_f32_16x16x16f16(half4_t a, half4_t b, float4_t c, int, int, int) {
  using namespace host_grid;
  return matrix<16, half4_t, double>(a, b, c, 4, 4, element<half4_t>, rows_16);
}

inline float16_t __builtin_amdgcn_mfma_f32_32x32x8f16(half4_t a, half4_t b, float16_t c, int, int, int) {
  using namespace host_grid;
  return matrix<32, half4_t, double>(a, b, c, 4, 16, element<half4_t>, rows_32);
}

inline float4_t __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(short4_t a, short4_t b, float4_t c, int, int, int) {
  using namespace host_grid;
  return matrix<16, short4_t, double>(a, b, c, 4, 4, bf16, rows_16);
}

inline float16_t __builtin_amdgcn_mfma_f32_32x32x2f32(float a, float b, float16_t c, int, int, int) {
  using namespace host_grid;
  return matrix<32, float, double>(a, b, c, 1, 16, scalar<float>, rows_32);
}

inline double4_t __builtin_amdgcn_mfma_f64_16x16x4f64(double a, double b, double4_t c, int, int, int) {
  using namespace host_grid;
  return matrix<16, double, double>(a, b, c, 1, 4, scalar<double>, rows_f64);
}

inline int4_t __builtin_amdgcn_mfma_i32_16x16x32_i8(long a, long b, int4_t c, int, int, int) {
  using namespace host_grid;
  return matrix<16, long, i64>(a, b, c, 8, 4, byte, rows_16);
}

inline float4_t __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(long a, long b, float4_t c, int, int, int) {
  using namespace host_grid;
  return matrix<16, long, double>(a, b, c, 8, 4, fp8, rows_16);
}
