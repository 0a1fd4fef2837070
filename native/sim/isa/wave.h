// The state of one 64-lane wave, and what its instructions may ask of the device around it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "sim/device/memory_port.h"
#include "sim/isa/inst.h"

namespace kerncap::sim {
class GlobalWaveSync;
}

namespace kerncap::sim::isa {

inline constexpr unsigned kLanes = 64;

struct alignas(64) Reg {
  std::uint32_t lane[kLanes];
};

// Thrown by handlers; sim/device turns it into a Fault with the wave's position. Never leaves the device.
struct Trouble {
  Fault::Kind kind = Fault::Kind::illegal_instruction;
  int lane = -1;
  std::uint64_t address = 0;
  unsigned bytes = 0;
  std::string detail;
};

// Hardware apertures of the flat address space (64-bit operands src_shared_base and src_private_base).
inline constexpr std::uint64_t kSharedAperture = 1ull << 48;
inline constexpr std::uint64_t kPrivateAperture = 2ull << 48;
inline constexpr std::uint64_t kApertureSize = 1ull << 32;

// Where a workgroup's private memory appears to be on GPUs whose code computes addresses in it (gfx90a: the
// private segment buffer, FLAT_SCRATCH). No address of a program has bit 47 set. The dwords of a wave's 64
// lanes lie side by side there; wave n begins at n times the wave's bytes.
inline constexpr std::uint64_t kScratchWindow = 1ull << 47;

// What a wave needs from its surroundings beyond memory; implemented by sim/device.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  // The predecoded instruction at a virtual address; throws Trouble where no code is loaded.
  virtual const Inst* code_at(std::uint64_t address) = 0;
  virtual std::uint64_t address_of(const Inst& inst) = 0;
  virtual GlobalWaveSync& wave_sync() = 0;
};

// Simulated time of one wave. vmem and LDS results return in order, scalar loads are waited for as a
// whole: s_waitcnt then moves `now` to the time the counted result is there.
struct Timeline {
  static constexpr unsigned kDepth = 64;
  std::uint64_t now = 0;
  std::uint64_t vm_done[kDepth] = {};
  std::uint64_t lgkm_done[kDepth] = {};
  std::uint32_t vm_head = 0, vm_tail = 0, lgkm_head = 0, lgkm_tail = 0;
  std::uint64_t busy[kUnits] = {};          // issue cycles by unit
  std::uint64_t lines = 0;                  // 128-byte lines that vector memory touched
  std::uint64_t bytes = 0;                  // that lines moved
  std::uint64_t bank_cycles = 0;            // LDS
  std::uint64_t lds_free = 0, vm_free = 0;  // when this wave's earlier accesses leave the unit

  // An access that occupies LDS, or the vector memory path, for `cycles`, and is answered `latency` later.
  void lds_access(unsigned cycles, unsigned latency) {
    lds_free = (lds_free > now ? lds_free : now) + cycles;
    bank_cycles += cycles;
    lgkm_issue(lds_free + latency);
  }
  void vm_access(unsigned cycles, unsigned latency) {
    vm_free = (vm_free > now ? vm_free : now) + cycles;
    vm_issue(vm_free + latency);
  }
  void vm_issue(std::uint64_t done) { push(vm_done, vm_head, vm_tail, done); }
  void lgkm_issue(std::uint64_t done) { push(lgkm_done, lgkm_head, lgkm_tail, done); }
  void vm_wait(unsigned left) { wait(vm_done, vm_head, vm_tail, left); }
  void lgkm_wait(unsigned left) { wait(lgkm_done, lgkm_head, lgkm_tail, left); }

 private:
  void push(std::uint64_t* ring, std::uint32_t& head, std::uint32_t& tail, std::uint64_t done) {
    if (tail - head == kDepth) wait(ring, head, tail, kDepth - 1);
    // In order: a result is never there before an earlier one.
    if (tail != head && ring[(tail - 1) % kDepth] > done) done = ring[(tail - 1) % kDepth];
    ring[tail++ % kDepth] = done;
  }
  void wait(const std::uint64_t* ring, std::uint32_t& head, std::uint32_t tail, unsigned left) {
    while (tail - head > left) {
      const std::uint64_t done = ring[head++ % kDepth];
      if (done > now) now = done;
    }
  }
};

struct Wave {
  enum class State : std::uint8_t { running, at_barrier, sleeping, done };

  Reg* v = nullptr;  // kVgprFile registers
  // SGPRs, VCC (106), TTMP (108), M0 (124), EXEC (126), and slack for tuples that begin at the end.
  alignas(8) std::uint32_t s[144] = {};
  std::uint32_t scc = 0;
  std::uint32_t mode = 0;
  // What is not the plain case: then the slow loop runs (float modes, s_set_gpr_idx_on).
  bool special_mode = false;
  std::uint32_t gpr_index_mode = 0;  // bits 0..3 as in s_set_gpr_idx_on; 0: off
  State state = State::running;

  const Inst* pc = nullptr;  // the next instruction
  std::int64_t budget = 0;   // wave-instructions left in this time slice; 0 ends it
  std::int64_t unspent = 0;  // what was left when the wave ended its slice itself
  Timeline time;

  std::uint8_t* lds = nullptr;
  std::uint32_t lds_bytes = 0;
  std::uint8_t* scratch = nullptr;  // this wave's; lane l starts at l * scratch_lane_bytes
  std::uint32_t scratch_lane_bytes = 0;
  std::uint32_t accum_offset = 0;
  std::uint32_t vgprs = 0;  // allocated
  std::uint32_t index = 0;  // in the workgroup
  std::uint32_t workgroup[3] = {};
  std::uint64_t hw_id = 0;
  std::uint64_t grid_barrier = 0;  // the ticket of ds_gws_barrier, while in_grid_barrier
  bool in_grid_barrier = false;
  MemoryPort* memory = nullptr;
  Surroundings* around = nullptr;
  const struct CostTable* costs = nullptr;

  alignas(64) std::uint32_t lane_mask[kLanes] = {};  // exec_of_mask as one dword a lane
  std::uint64_t exec_of_mask = 0;

  [[nodiscard]] std::uint64_t s64(unsigned reg) const {
    std::uint64_t value;
    std::memcpy(&value, &s[reg], 8);
    return value;
  }
  void set_s64(unsigned reg, std::uint64_t value) { std::memcpy(&s[reg], &value, 8); }
  [[nodiscard]] std::uint64_t exec() const { return s64(kSrcExec); }
  void set_exec(std::uint64_t value) { set_s64(kSrcExec, value); }
  [[nodiscard]] std::uint64_t vcc() const { return s64(kSrcVcc); }
  [[nodiscard]] bool full() const { return exec() == ~0ull; }

  // EXEC as a mask of all ones or zeros a lane; recomputed only after EXEC changed.
  const std::uint32_t* mask() {
    const std::uint64_t now = exec();
    if (now != exec_of_mask) {
      exec_of_mask = now;
      for (unsigned l = 0; l < kLanes; ++l) lane_mask[l] = 0u - static_cast<std::uint32_t>(now >> l & 1u);
    }
    return lane_mask;
  }
  // MODE as the HSA ABI starts waves (round to nearest even, denormals kept) needs no care instruction by
  // instruction.
  void update_special_mode() { special_mode = gpr_index_mode != 0 || (mode & 0xFFu) != 0xF0u; }
  void end_slice() {
    unspent = budget;
    budget = 0;
  }
  void stop(State next) {
    state = next;
    end_slice();
  }
};

}  // namespace kerncap::sim::isa
