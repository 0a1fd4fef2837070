// From the control block's request to one dispatch that is captured.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "interpose/common/names.h"
#include "interpose/hsa/kernel_registry.h"
#include "live/layout.h"

namespace kerncap::interpose {

struct Process;
class Capture;
class InterceptQueue;
union Packet;

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

class CaptureController {
 public:
  explicit CaptureController(Process& process);
  ~CaptureController();

  // Looks for a new request; one load when there is none.
  void poll();

  [[nodiscard]] bool armed() const { return armed_.load(std::memory_order_relaxed); }
  // The capture that is under way; null when there is none.
  [[nodiscard]] Capture* active() const { return active_.load(std::memory_order_acquire); }

  // Whether this dispatch, the `nth` of its kernel, is the one that is wanted. If so the capture is this
  // process's from now on, and its packets are to be written in place of `packet`.
  Capture* claim(InterceptQueue& queue, const Packet& packet, Kernel& kernel, std::uint32_t row,
                 std::uint64_t nth);

  // Called by what would change or free memory that is being saved: returns once no capture is under way.
  // Every capture ends: its waits have limits.
  void wait_while_active();

  // Keeps a call that frees memory for the end of the capture that is under way. False: there is none. It
  // must not wait for that end: the captured kernel itself may be waiting for the free, which it asked of the
  // host.
  bool put_off(std::function<void()> call);

  // The capture thread's last act.
  void capture_ended();

  // Before the process ends: lets a capture that is under way finish.
  void process_ends();

 private:
  void take_request(std::uint64_t sequence);
  Match judge(Kernel& kernel);
  void resolve();
  void report(live::CaptureState state, const std::string& message);
  bool wanted_dispatch(const Packet& packet, const Kernel& kernel, std::uint64_t nth);
  void disarm();

  Process& process_;
  live::Control& control_;
  std::atomic<bool> armed_{false};
  std::atomic<Capture*> active_{nullptr};
  std::atomic<std::uint64_t> seen_{0};

  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::function<void()>> put_off_;
  CaptureRequest request_;
  std::optional<Pattern> pattern_;
  // What the pattern means among the code that is loaded: looked up again when that changes.
  std::uint64_t resolved_generation_ = 0;
  std::vector<const Kernel*> candidates_;  // one an id
};

}  // namespace kerncap::interpose
