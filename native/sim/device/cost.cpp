#include "sim/device/cost.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace kerncap::sim {
namespace isa {
namespace {

constexpr CostTable kMi300x{.device = "gfx942 (MI300X)"};
// One of its two dies is a device. bf16 runs at the rate of f16 in the _1k forms only.
constexpr CostTable kMi250x{.device = "gfx90a (MI250X)",
                            .matrix_f16 = 128,
                            .matrix_bf16 = 64,
                            .matrix_8_bit = 128,
                            .matrix_xf32 = 0,
                            .device_bytes_per_cycle = 1024};

bool has(const char* name, const char* part) { return std::strstr(name, part) != nullptr; }

bool ends(const char* name, const char* tail) {
  const std::size_t n = std::strlen(name), t = std::strlen(tail);
  return n >= t && std::strcmp(name + n - t, tail) == 0;
}

// Matrix cores: the multiplications that the name says, over the rate of the source type. How many matrices
// there are
// ("v_mfma_f32_32x32x8_f16" one, "..._4x4x4_16b_f16" and gfx90a's "..._4x4x4f16" sixteen) the width of the
// result tells; v_smfmac counts the zeros that it skips, so it does half.
unsigned matrix_cost(const CostTable& t, const Opcode& opcode) {
  const char* name = opcode.mnemonic;
  unsigned m = 0, n = 0, k = 0;
  const char* shape = std::strchr(name + 2, '_');                    // behind v_mfma
  shape = shape != nullptr ? std::strchr(shape + 1, '_') : nullptr;  // behind the result's type
  if (shape == nullptr || std::sscanf(shape, "_%ux%ux%u", &m, &n, &k) != 3) return t.valu;
  const unsigned blocks = opcode.width('D') * 64 / (m * n * (ends(name, "f64") ? 2 : 1));
  unsigned rate = t.matrix_f16;  // and bf16_1k
  if (ends(name, "bf16")) rate = t.matrix_bf16;
  if (ends(name, "f32")) rate = ends(name, "xf32") ? t.matrix_xf32 : t.matrix_f32;
  if (ends(name, "f64")) rate = t.matrix_f64;
  if (ends(name, "i8") || ends(name, "fp8") || ends(name, "bf8")) rate = t.matrix_8_bit;
  unsigned cycles = m * n * k * blocks / rate;
  if (has(name, "v_smfmac")) cycles /= 2;
  return cycles < t.matrix_least ? t.matrix_least : cycles;
}

unsigned valu_cost(const CostTable& t, const Opcode& opcode) {
  const char* name = opcode.mnemonic;
  const bool f64 = has(name, "f64");
  if (has(name, "v_mfma") || has(name, "v_smfmac")) return matrix_cost(t, opcode);
  static constexpr const char* kTranscendental[] = {"v_exp_",  "v_log_", "v_rcp_", "v_rsq_",
                                                    "v_sqrt_", "v_sin_", "v_cos_"};
  for (const char* part : kTranscendental)
    if (std::strncmp(name, part, std::strlen(part)) == 0)
      return f64 ? t.valu_f64_transcendental : t.valu_quarter_rate;
  if (has(name, "v_mul_lo_u32") || has(name, "v_mul_hi_") || has(name, "v_mad_u64") || has(name, "v_mad_i64"))
    return has(name, "24") ? t.valu : t.valu_quarter_rate;
  return f64 ? t.valu_f64 : t.valu;
}

}  // namespace

const CostTable& cost_table(Arch arch) { return arch == Arch::gfx90a ? kMi250x : kMi300x; }

void set_cost(const CostTable& t, Inst* inst) {
  const char* name = inst->opcode->mnemonic;
  const auto set = [&](Unit unit, unsigned cycles) {
    inst->unit = unit;
    inst->cost = static_cast<std::uint16_t>(cycles);
  };
  switch (inst->opcode->encoding) {
    case Encoding::SOP1:
    case Encoding::SOP2:
    case Encoding::SOPC:
    case Encoding::SOPK:
      return set(has(name, "pc_b64") || has(name, "call") ? Unit::branch : Unit::scalar,
                 has(name, "pc_b64") || has(name, "call") ? t.branch : t.scalar);
    case Encoding::SOPP:
      if (has(name, "branch")) return set(Unit::branch, t.branch);
      return set(Unit::none, std::strcmp(name, "s_barrier") == 0 ? t.barrier : t.other);
    case Encoding::SMEM:
      return set(Unit::smem, t.other);
    case Encoding::DS:
      return set(Unit::lds, t.other);
    case Encoding::FLAT:
    case Encoding::GLOBAL:
    case Encoding::SCRATCH:
    case Encoding::MUBUF:
    case Encoding::MTBUF:
      return set(Unit::vmem, t.other);
    default:
      return set(Unit::valu, valu_cost(t, *inst->opcode));
  }
}

}  // namespace isa

std::string cost_table_text(Arch arch) {
  const isa::CostTable& t = isa::cost_table(arch);
  std::string out;
  char line[160];
  const auto row = [&](const char* what, unsigned value, const char* unit) {
    std::snprintf(line, sizeof line, "%-52s %6u %s\n", what, value, unit);
    out += line;
  };
  out += std::string("Cost table of the simulated ") + t.device + " (simulated cycles, not GPU time)\n";
  row("scalar ALU instruction", t.scalar, "cycles");
  row("branch, call, return", t.branch, "cycles");
  row("vector ALU, 64 lanes", t.valu, "cycles");
  row("vector ALU, f64", t.valu_f64, "cycles");
  row("exp log rcp rsq sqrt sin cos, 32-bit multiply", t.valu_quarter_rate, "cycles");
  row("rcp rsq sqrt of f64", t.valu_f64_transcendental, "cycles");
  row("matrix core, f16 (at least 8 cycles)", t.matrix_f16, "multiply-adds a cycle of the SIMD");
  row(t.matrix_xf32 != 0 ? "matrix core, bf16" : "matrix core, bf16 (in _1k forms as f16)", t.matrix_bf16,
      "multiply-adds a cycle of the SIMD");
  row("matrix core, 8-bit integers and floats", t.matrix_8_bit, "multiply-adds a cycle of the SIMD");
  if (t.matrix_xf32 != 0) row("matrix core, xf32", t.matrix_xf32, "multiply-adds a cycle of the SIMD");
  row("matrix core, f32", t.matrix_f32, "multiply-adds a cycle of the SIMD");
  row("matrix core, f64", t.matrix_f64, "multiply-adds a cycle of the SIMD");
  row("memory instruction, issue", t.other, "cycles");
  row("barrier", t.barrier, "cycles");
  row("vector memory: latency", t.vmem_latency, "cycles");
  row("vector memory atomic with result: latency", t.atomic_latency, "cycles");
  row("scratch memory: latency", t.scratch_latency, "cycles");
  row("scalar memory: latency", t.smem_latency, "cycles");
  row("LDS: latency", t.lds_latency, "cycles");
  row("vector memory: each 128-byte line touched", t.cycles_per_line, "cycles of the compute unit");
  row("LDS: bytes a cycle, 32 banks", t.lds_bytes_per_cycle, "bytes of the compute unit");
  row("memory of the device", t.device_bytes_per_cycle, "bytes a cycle");
  row("dispatch", t.dispatch_overhead, "cycles");
  row("workgroup launch on a compute unit", t.workgroup_launch, "cycles");
  row("waves a SIMD, at most", t.waves_per_simd, "waves");
  return out;
}

}  // namespace kerncap::sim
