// The control block's side of a capture (native/live/layout.h says what each state promises): takes requests,
// tells which kernel and which dispatch they mean, and answers. What a dispatch is, is each device's own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "interpose/common/names.h"
#include "interpose/common/triton.h"
#include "live/layout.h"

namespace kerncap::interpose {

// A request, copied out of the control block.
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

// A kernel that a request may mean.
struct Candidate {
  std::uint64_t id;
  std::string symbol;
  std::string demangled;
};

// A capture that is under way.
class RunningCapture {
 public:
  void cancel() { cancelled_.store(true, std::memory_order_release); }

 protected:
  ~RunningCapture() = default;
  [[nodiscard]] bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> cancelled_{false};
};

class CaptureRequests {
 public:
  CaptureRequests(const CaptureRequests&) = delete;
  CaptureRequests& operator=(const CaptureRequests&) = delete;

  // Looks for a new request; one load when there is none.
  void poll();
  [[nodiscard]] bool armed() const { return armed_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_active() const { return active_.load(std::memory_order_acquire) != nullptr; }

  // Called by what would change or free memory that is being saved: returns once no capture is under way.
  // Every capture ends: its waits have limits.
  void wait_while_active();
  // Before the process ends: lets a capture that is under way finish.
  void process_ends() { wait_while_active(); }

 protected:
  explicit CaptureRequests(live::Control& control) : control_(control) {}
  virtual ~CaptureRequests() = default;

  // Whether dispatches have to be watched from now on, for a request or for the capture that is under way.
  virtual void watch(bool) {}

  // Whether the request is known not to mean this kernel: without the lock. Kernel::judged and Kernel::match
  // hold what was found for which request.
  template <typename Kernel>
  [[nodiscard]] bool not_meant(const Kernel& kernel) const {
    return kernel.judged.load(std::memory_order_acquire) == seen_.load(std::memory_order_relaxed) &&
           kernel.match.load() == Match::none;
  }
  template <typename Kernel>
  static void set_judged(Kernel& kernel, Match match, std::uint64_t sequence) {
    kernel.match.store(match);
    kernel.judged.store(sequence, std::memory_order_release);
  }

  // All of the following are called with mutex_ held.

  // Whether the candidates were found among older code than that of `generation`; from now on they were not.
  bool outdated(std::uint64_t generation);
  // Those that match exactly, or else those that match in part; one an id.
  void set_candidates(std::vector<Candidate> exact, std::vector<Candidate> part);
  // Whether the `nth` dispatch of the kernel, of so many work-items, is the one. Where several kernels can be
  // meant, or it was before the request, that is answered.
  //
  // An autotuner compiles one kernel under several configurations, all of one name, and launches each to time
  // it. Who says that name means what the program goes on with: such launches are not counted then.
  template <typename Kernel>
  bool asked_for(const Kernel& kernel, const std::uint32_t (&work_items)[3], std::uint64_t nth) {
    if (pattern_->is_id_of(kernel.id)) {
      return only_candidate(kernel.id, false) && wanted(work_items, nth, kernel.symbol);
    }
    if (is_tuning()) return false;
    const std::uint64_t timed = kernel.calls->timed.load(std::memory_order_relaxed);
    return only_candidate(kernel.id, timed > 0) &&
           wanted(work_items, nth > timed ? nth - timed : 0, kernel.symbol);
  }
  // Makes the request this process's. False: another process of the session was first.
  bool own();
  void report(live::CaptureState state, const std::string& message);
  void disarm();

  live::Control& control_;
  std::atomic<bool> armed_{false};
  std::atomic<RunningCapture*> active_{nullptr};
  std::mutex mutex_;
  std::condition_variable ended_;
  CaptureRequest request_;
  std::optional<Pattern> pattern_;

 private:
  void take_request(std::uint64_t sequence);
  // Whether `id` is what the request means. `chosen`: an autotuner's choice among kernels of its name.
  bool only_candidate(std::uint64_t id, bool chosen);
  bool wanted(const std::uint32_t (&work_items)[3], std::uint64_t nth, const std::string& symbol);

  std::atomic<std::uint64_t> seen_{0};
  // What the pattern means among the code that is loaded: looked up again when that changes.
  std::uint64_t resolved_generation_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace kerncap::interpose
