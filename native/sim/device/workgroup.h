// One workgroup: its waves, LDS and private memory, run in turn on one host thread.
#pragma once

#include <memory>
#include <vector>

#include "sim/device/cost.h"
#include "sim/device/dispatch.h"
#include "sim/isa/execute.h"

namespace kerncap::sim {

// 64-byte aligned memory that starts as zeros and costs nothing until it is touched.
class LazyMemory {
 public:
  LazyMemory() = default;
  explicit LazyMemory(std::size_t bytes);
  ~LazyMemory();
  LazyMemory(LazyMemory&& other) noexcept;
  LazyMemory& operator=(LazyMemory&& other) noexcept;
  // Zeros in the first `bytes`.
  void clear(std::size_t bytes);
  [[nodiscard]] std::uint8_t* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

class Workgroup {
 public:
  enum class Progress { finished, advanced, waiting };

  // Sets the initial state of all waves (LLVM AMDGPUUsage, "Initial Kernel Execution State").
  void start(const DispatchInfo& dispatch, std::uint64_t index, const isa::Inst* entry, MemoryPort* memory,
             isa::Surroundings* around, const isa::CostTable* costs);

  // Runs each wave that can run for up to `slice` wave-instructions. `waiting`: all of them only slept.
  // Throws isa::Trouble; the wave that caused it is then current().
  Progress advance(const isa::HandlerSet& handlers, std::int64_t slice);

  [[nodiscard]] const isa::Wave& current() const { return *waves_[current_]; }
  [[nodiscard]] std::uint64_t index() const { return index_; }
  [[nodiscard]] std::uint64_t executed() const { return executed_; }
  [[nodiscard]] unsigned wave_count() const { return count_; }
  [[nodiscard]] const isa::Wave& wave(unsigned n) const { return *waves_[n]; }

 private:
  void start_wave(const DispatchInfo& dispatch, unsigned n, const isa::Inst* entry);
  bool release_barrier();

  std::vector<std::unique_ptr<isa::Wave>> waves_;
  std::vector<LazyMemory> registers_;
  LazyMemory lds_, scratch_;
  unsigned count_ = 0;
  unsigned current_ = 0;
  std::uint64_t index_ = 0;
  std::uint64_t executed_ = 0;
  std::uint32_t size_[3] = {};  // of this workgroup: the last ones of a grid may be smaller
  std::uint32_t id_[3] = {};
};

}  // namespace kerncap::sim
