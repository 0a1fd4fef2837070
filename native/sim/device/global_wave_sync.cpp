#include "sim/device/global_wave_sync.h"

#include <algorithm>
#include <utility>

namespace kerncap::sim {

void GlobalWaveSync::init(unsigned counter, std::uint32_t count) {
  const std::lock_guard lock(mutex_);
  Counter& c = counters_[counter % kCounters];
  c.set = true;
  c.left = count;
  c.arriving = 0;
}

std::uint64_t GlobalWaveSync::arrive(unsigned counter, std::uint32_t count, std::uint64_t now) {
  const std::lock_guard lock(mutex_);
  Counter& c = counters_[counter % kCounters];
  if (!std::exchange(c.set, true)) c.left = count;
  c.arriving = std::max(c.arriving, now);
  const std::uint64_t ticket = c.barriers;
  if (c.left != 0) {
    --c.left;
    return ticket;
  }
  c.left = count;
  c.completed_at = std::exchange(c.arriving, 0);
  ++c.barriers;
  return ticket;
}

bool GlobalWaveSync::complete(unsigned counter, std::uint64_t ticket, std::uint64_t* latest) {
  const std::lock_guard lock(mutex_);
  const Counter& c = counters_[counter % kCounters];
  // No later barrier is complete before this wave has arrived at it, so that the time is this one's.
  *latest = c.completed_at;
  return c.barriers > ticket;
}

void GlobalWaveSync::reset() {
  const std::lock_guard lock(mutex_);
  for (Counter& c : counters_) {
    c.set = false;
    c.left = 0;
    c.arriving = 0;
    ++c.barriers;  // waves that still wait go on
  }
}

}  // namespace kerncap::sim
