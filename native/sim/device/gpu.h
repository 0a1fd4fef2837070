// The seam between the simulated runtime (sim/hsa) and the simulated silicon (sim/device,
// sim/isa): the runtime hands over AQL dispatch packets and gets back what happened.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/device/address_space.h"

namespace kerncap::sim {

enum class Arch { gfx90a, gfx942, gfx1100 };

// "gfx942" and the like; nullopt when the simulator does not know it.
std::optional<Arch> parse_arch(const std::string& name);
const char* arch_name(Arch arch);

struct GpuConfig {
  Arch arch = Arch::gfx942;
  unsigned compute_units = 304;             // of the device that is simulated; used by the cycle model
  unsigned threads = 0;                     // host threads over workgroups; 0: as many as there are cores
  bool deterministic = false;               // one thread, workgroups and waves in a fixed order
  std::uint64_t max_wave_instructions = 0;  // a dispatch that executes more is stopped; 0: the default
  double max_seconds = 0;                   // wall-clock limit of one dispatch; 0: the default
  double clock_hz = 100e6;                  // timestamp clock (HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY)
};

struct Fault {
  enum class Kind {
    memory_read,  // no allocation there
    memory_write,
    write_to_read_only,
    misaligned_atomic,
    lds_out_of_range,
    illegal_instruction,  // jumped into bytes that do not decode
    trap,                 // s_trap 2: __builtin_trap, abort, assert
    time_limit,
    bad_dispatch,  // packet asks for more LDS, work-items, scratch ... than the device has
  };
  Kind kind = Kind::memory_read;
  std::string kernel;        // symbol, demangled where possible
  std::uint64_t pc = 0;      // virtual address of the instruction
  std::uint64_t offset = 0;  // pc relative to the start of the kernel, or of the function in `detail`
  std::string instruction;   // disassembled
  std::string source;        // "file:line" where the code object has line tables, else empty
  std::array<std::uint32_t, 3> workgroup{};
  unsigned wave = 0;  // in its workgroup
  int lane = -1;      // -1: scalar access or not known
  std::uint64_t address = 0;
  unsigned bytes = 0;
  std::optional<Allocation> nearest;
  std::string detail;  // a sentence for kinds that need one

  [[nodiscard]] std::string to_string() const;  // one paragraph for a person
};

struct DispatchOutcome {
  std::uint64_t cycles = 0;             // simulated, from the cost table: the whole device's elapsed cycles
  std::uint64_t wave_instructions = 0;  // executed, summed over waves
  std::uint64_t waves = 0;
  std::optional<Fault> fault;
};

// One loaded piece of device code, so that a PC can be named in messages and checked at load.
struct CodeRange {
  std::uint64_t base = 0;  // VA of the function's first instruction
  std::uint64_t size = 0;  // bytes
  std::string symbol;      // as in the symbol table (mangled)
};

// A range of bytes that a dispatch stored to (see Gpu::run's `written`).
struct WrittenRange {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
};

class Gpu {
 public:
  // `memory` must outlive the Gpu.
  Gpu(const GpuConfig& config, AddressSpace& memory);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  // Decodes all of `ranges`; a sentence that names the first unknown opcode and where it is, else nullopt.
  [[nodiscard]] std::optional<std::string> check_code(const std::vector<CodeRange>& ranges) const;

  // Code that may run from now on, and no longer. Ranges must be mapped, and do not change while loaded.
  void load_code(const std::vector<CodeRange>& ranges);
  void unload_code(const std::vector<CodeRange>& ranges);

  // Executes one kernel-dispatch packet (64 bytes, HSA AQL layout) to its end. Reentrant: several
  // queues may run dispatches at the same time. `packet_address` is where the packet lies in its
  // queue and `queue_address` the amd_queue_t (kernels that use dispatch_ptr / queue_ptr get them).
  // With `written`, also reports the ranges of global memory the dispatch stored to, merged and sorted.
  // `cancel`, if given, is polled: a true value ends the dispatch with a time_limit fault.
  DispatchOutcome run(const void* packet, std::uint64_t packet_address, std::uint64_t queue_address,
                      std::uint64_t dispatch_id, std::vector<WrittenRange>* written = nullptr,
                      const std::atomic<bool>* cancel = nullptr);

  // Names a PC as "file:line" for faults ("" where it cannot); called on the thread that found the fault. Set
  // it before the first run.
  void set_source_resolver(std::function<std::string(std::uint64_t pc)> resolver);
  // The order in which later dispatches start their workgroups: 0 ascending, anything else a permutation of
  // it.
  void set_schedule(std::uint64_t seed);

  [[nodiscard]] const GpuConfig& config() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The cost table of the cycle model as text, one line a class of instruction
// (printed by `kerncap doctor --costs` and explained in docs/simulator.md).
std::string cost_table_text(Arch arch);

// The disassembly of one instruction at `code` (at most `bytes` long), in LLVM's syntax; the number of
// bytes it takes in `*length` (0: does not decode).
std::string disassemble(Arch arch, const void* code, std::size_t bytes, std::size_t* length);

}  // namespace kerncap::sim
