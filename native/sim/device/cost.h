// The published cost table of the cycle model (docs/simulator.md explains it). Numbers are the vendor's where
// it publishes them (CDNA2 and CDNA3 white papers, ISA documents: rates per clock), else round ones that
// order things rightly.
#pragma once

#include <cstdint>

#include "sim/isa/inst.h"

namespace kerncap::sim::isa {

struct CostTable {
  const char* device;
  // Issue cycles a wave-instruction occupies its SIMD for: 64 lanes on 16-wide units take 4.
  unsigned scalar = 4, branch = 8, valu = 4, valu_f64 = 4, valu_quarter_rate = 16,
           valu_f64_transcendental = 32;
  unsigned other = 4;
  // Matrix cores: multiply-adds a cycle of one SIMD, and the least an instruction takes.
  unsigned matrix_f16 = 256, matrix_bf16 = 256, matrix_8_bit = 512, matrix_xf32 = 128, matrix_f32 = 32,
           matrix_f64 = 32, matrix_least = 8;
  // Cycles from issue until the result may be waited for.
  unsigned vmem_latency = 500, smem_latency = 200, lds_latency = 64, atomic_latency = 700,
           scratch_latency = 300;
  unsigned barrier = 16;
  // Throughput of one compute unit.
  unsigned line_bytes = 128;     // granule of vector memory
  unsigned cycles_per_line = 2;  // address and L1 path: 64 bytes a clock
  unsigned lds_bytes_per_cycle = 128;
  unsigned lds_banks = 32;
  // Of the whole device.
  unsigned device_bytes_per_cycle = 4096;
  unsigned dispatch_overhead = 2000;  // packet processor, until the first wave starts
  unsigned workgroup_launch = 20;     // cycles between two workgroups that start on one compute unit
  // Occupancy.
  unsigned simds = 4, waves_per_simd = 8, vgprs_per_simd_lane = 512, lds_bytes = 65536;
};

const CostTable& cost_table(Arch arch);

// Unit and issue cycles of an instruction whose operands are lowered.
void set_cost(const CostTable& table, Inst* inst);

}  // namespace kerncap::sim::isa
