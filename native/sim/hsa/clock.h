// The one clock of the simulated machine, in nanoseconds.
//
// It runs with the host's monotonic clock, so that what a program times on the host and on the device can be
// laid side by side; but a dispatch lasts as long as its simulated cycles say, which may be longer than the
// host took. So that no timestamp lies in the future, the clock skips ahead past the end of each such
// dispatch.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "sim/hsa/device_model.h"

namespace kerncap::sim::rt {

class Clock {
 public:
  [[nodiscard]] std::uint64_t now_ns() const { return host_ns() + skipped_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t now_ticks() const { return now_ns() / kNanosecondsPerTick; }

  // After this, now_ns() is at least `ns`.
  void advance_to(std::uint64_t ns) {
    std::uint64_t skipped = skipped_.load(std::memory_order_acquire);
    while (true) {
      std::uint64_t now = host_ns() + skipped;
      if (now >= ns) return;
      if (skipped_.compare_exchange_weak(skipped, skipped + (ns - now), std::memory_order_acq_rel)) return;
    }
  }

 private:
  static std::uint64_t host_ns() {
    return static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  }

  std::atomic<std::uint64_t> skipped_{0};
};

}  // namespace kerncap::sim::rt
