// The ranges that dispatches stored to, while somebody asks for them (kerncap_sim_track_writes).
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "sim/device/gpu.h"
#include "sim/hsa/kerncap_sim.h"

namespace kerncap::sim::rt {

class WrittenRanges {
 public:
  static WrittenRanges& instance();

  [[nodiscard]] bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  void enable(bool on) { enabled_.store(on, std::memory_order_relaxed); }
  void add(const std::vector<WrittenRange>& ranges);
  std::size_t take(kerncap_sim_range* out, std::size_t capacity);

 private:
  std::atomic<bool> enabled_{false};
  std::mutex mutex_;
  std::vector<WrittenRange> ranges_;  // merged and sorted
};

}  // namespace kerncap::sim::rt
