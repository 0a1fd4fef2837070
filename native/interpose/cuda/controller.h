// From the control block's request to one launch that is captured (native/live/layout.h says what each state
// promises).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "interpose/common/names.h"
#include "interpose/cuda/kernels.h"
#include "interpose/cuda/launch.h"
#include "live/layout.h"

namespace kerncap::interpose::cuda {

struct Process;
class Capture;

struct CaptureRequest {
  std::uint64_t sequence = 0;
  live::MemoryMode memory = live::MemoryMode::reachable;
  std::uint64_t nth = 0;
  std::uint64_t timeout_ms = 0;
  bool exit_after = false;
  std::uint32_t grid[3] = {};
  std::string output;

  [[nodiscard]] bool any_grid() const { return (grid[0] | grid[1] | grid[2]) == 0; }
};

class Controller {
 public:
  explicit Controller(Process& process);

  // Looks for a new request; one load when there is none.
  void poll();
  [[nodiscard]] bool armed() const { return armed_.load(std::memory_order_relaxed); }
  // The capture that is under way; null when there is none.
  [[nodiscard]] Capture* active() const { return active_.load(std::memory_order_acquire); }

  // Whether this launch, the `nth` of its kernel, is the one that is wanted: then this thread takes the
  // capture, before and after the launch. Null otherwise.
  Capture* claim(const Launch& launch, Kernel& kernel, std::uint64_t nth);
  // Returns once no capture is under way; every capture ends, since its waits have limits.
  void wait_while_active();
  void capture_ended();
  void process_ends() { wait_while_active(); }

 private:
  void take_request(std::uint64_t sequence);
  Match judge(Kernel& kernel);
  void resolve();
  void report(live::CaptureState state, const std::string& message);
  bool wanted_launch(const Launch& launch, const Kernel& kernel, std::uint64_t nth);
  void disarm();

  Process& process_;
  live::Control& control_;
  std::atomic<bool> armed_{false};
  std::atomic<Capture*> active_{nullptr};
  std::atomic<std::uint64_t> seen_{0};

  std::mutex mutex_;
  std::condition_variable ended_;
  CaptureRequest request_;
  std::optional<Pattern> pattern_;
  std::uint64_t resolved_generation_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace kerncap::interpose::cuda
