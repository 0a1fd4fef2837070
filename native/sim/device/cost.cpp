#include "sim/device/cost.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace kerncap::sim {
namespace isa {
namespace {

constexpr CostTable kMi300x{.device = "gfx942 (MI300X)"};

bool has(const char* name, const char* part) { return std::strstr(name, part) != nullptr; }

// Matrix cores: the multiplications that the name says, over the rate of the source type.
// "v_mfma_f32_32x32x8_f16" is one block, "..._4x4x4_16b_f16" sixteen; v_smfmac counts the zeros that it
// skips, so it does half.
unsigned matrix_cost(const CostTable& t, const char* name) {
  unsigned m = 0, n = 0, k = 0, blocks = 1;
  const char* shape = std::strchr(name + 2, '_');                    // behind v_mfma
  shape = shape != nullptr ? std::strchr(shape + 1, '_') : nullptr;  // behind the result's type
  if (shape == nullptr || std::sscanf(shape, "_%ux%ux%u", &m, &n, &k) != 3) return t.valu;
  const char* x = std::strrchr(shape, 'x');
  if (has(name, "xf32")) x = shape;
  if (const char* b = std::strchr(x, 'b'); b != nullptr && b[1] == '_') {
    const char* digits = b;
    while (digits[-1] >= '0' && digits[-1] <= '9') --digits;
    blocks = static_cast<unsigned>(std::strtoul(digits, nullptr, 10));
  }
  const char* source = std::strrchr(name, '_') + 1;
  unsigned rate = t.matrix_f16;
  if (std::strcmp(source, "f32") == 0) rate = t.matrix_f32;
  if (std::strcmp(source, "f64") == 0) rate = t.matrix_f64;
  if (std::strcmp(source, "xf32") == 0) rate = t.matrix_xf32;
  if (std::strcmp(source, "i8") == 0 || std::strcmp(source, "fp8") == 0 || std::strcmp(source, "bf8") == 0)
    rate = t.matrix_8_bit;
  unsigned cycles = m * n * k * blocks / rate;
  if (has(name, "v_smfmac")) cycles /= 2;
  return cycles < t.matrix_least ? t.matrix_least : cycles;
}

unsigned valu_cost(const CostTable& t, const char* name) {
  const bool f64 = has(name, "f64");
  if (has(name, "v_mfma") || has(name, "v_smfmac")) return matrix_cost(t, name);
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

const CostTable& cost_table(Arch /*arch*/) { return kMi300x; }

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
      return set(Unit::valu, valu_cost(t, name));
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
  row("matrix core, f16 and bf16 (at least 8 cycles)", t.matrix_f16, "multiply-adds a cycle of the SIMD");
  row("matrix core, 8-bit integers and floats", t.matrix_8_bit, "multiply-adds a cycle of the SIMD");
  row("matrix core, xf32", t.matrix_xf32, "multiply-adds a cycle of the SIMD");
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
