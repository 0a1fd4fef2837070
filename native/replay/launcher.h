// One queue on the device, and dispatches on it one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/range_set.h"
#include "replay/runtime.h"

namespace kerncap::replay {

struct Launch {
  abi::hsa_kernel_dispatch_packet_t packet{};  // header and completion signal are filled in here
  double limit_seconds = 60;
  bool reshaped = false;      // its grid is not the captured one
  std::uint32_t cluster = 0;  // AMD's devices have none
};

// When a dispatch ran: by its own timestamps, and by the system clock before it was submitted and after it
// was seen to have ended. Zero where there is none; what can be believed is the client's to say.
struct DispatchTime {
  std::uint64_t start_ns = 0, end_ns = 0;
  std::uint64_t submitted_ns = 0, seen_ns = 0;
};

class Launcher {
 public:
  // `timestamps` false: dispatches are treated as having none of their own.
  Launcher(Runtime& runtime, const Agent& agent, bool cooperative, bool timestamps);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Runs one dispatch to its end, `count` times. Throws ReplayError (fault, timeout); the queue is of no use
  // after that.
  std::vector<DispatchTime> run(const Launch& launch, std::uint64_t count);
  // What was stored to since the last call, where the device can tell and was asked to.
  RangeSet take_written();
  void track_writes(bool enable);
  [[nodiscard]] bool can_track_writes() const { return runtime_.sim.take_written != nullptr; }

  // Writes `bytes` of a buffer of the device's own, so that its caches hold nothing of the kernel's.
  void flush_caches(std::uint64_t bytes);
  // Orders what follows after every store so far, and drops what is cached by a compute unit.
  void settle();

  // What times come from: the dispatch itself, or the system's clock around it.
  [[nodiscard]] const char* timer() const { return timestamps_ ? "dispatch" : "system"; }
  [[nodiscard]] std::uint64_t queue_address() const { return reinterpret_cast<std::uint64_t>(queue_); }

 private:
  DispatchTime run_one(const Launch& launch);
  static void on_queue_error(abi::hsa_status_t status, abi::hsa_queue_t* queue, void* self);
  static abi::hsa_status_t on_event(const abi::hsa_amd_event_t* event, void* self);
  std::uint64_t reserve_slot();
  [[nodiscard]] std::uint64_t system_clock_ns() const;
  void submit(std::uint64_t slot, const void* packet, std::uint16_t header, std::uint16_t setup);
  void wait(double limit_seconds, const char* what);
  [[noreturn]] void throw_fault() const;

  Runtime& runtime_;
  Agent agent_;
  abi::hsa_queue_t* queue_ = nullptr;
  abi::hsa_signal_t signal_{};
  bool timestamps_ = true;  // false: there are none; ends are waited for without sleeping, to be seen at once
  std::atomic<std::uint32_t> error_{0};  // hsa_status_t
  std::atomic<std::uint64_t> fault_address_{0};
  std::atomic<std::uint32_t> fault_reason_{0};
  void* flush_buffer_ = nullptr;
  std::uint64_t flush_bytes_ = 0;
};

}  // namespace kerncap::replay
