// Global wave sync (GWS): barriers over the waves of a whole grid, on counters of the device.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

namespace kerncap::sim {

// The counters outlive dispatches: one dispatch sets a counter up (ds_gws_init), the next one's waves wait at
// it (ds_gws_barrier). A wave that waits asks again at each of its turns.
class GlobalWaveSync {
 public:
  static constexpr unsigned kCounters = 64;

  // The next barrier is complete with the arrival after `count` others.
  void init(unsigned counter, std::uint32_t count);
  // Arrives at simulated time `now`; `count` is how many others the barrier after this one waits for, and
  // this one too where nothing has set the counter up. The ticket says which barrier it was.
  std::uint64_t arrive(unsigned counter, std::uint32_t count, std::uint64_t now);
  // Whether the barrier of the ticket is complete; then `*latest` is when the last wave arrived.
  bool complete(unsigned counter, std::uint64_t ticket, std::uint64_t* latest);
  // Nothing is set up, nobody has arrived: after a dispatch that did not end well.
  void reset();

 private:
  struct Counter {
    bool set = false;
    std::uint32_t left = 0;          // arrivals before the one that completes
    std::uint64_t barriers = 0;      // completed ones
    std::uint64_t arriving = 0;      // latest arrival at the open barrier
    std::uint64_t completed_at = 0;  // of the last complete one
  };
  std::mutex mutex_;
  std::array<Counter, kCounters> counters_;
};

}  // namespace kerncap::sim
