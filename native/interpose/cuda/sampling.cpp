#include "interpose/cuda/sampling.h"

#include <algorithm>

#include "interpose/cuda/driver.h"
#include "interpose/cuda/process.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names

void Sampling::start() {
  const std::lock_guard lock(mutex_);
  allowance_.store(kMostAllowance);
  if (timing_) switch_records(true);
  set(timing_ ? State::open : State::closed);
}

void Sampling::switch_records(bool on) {
  if (on == on_.load()) return;
  const CUptiResult result = on ? cupti().cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
                                : cupti().cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (result == CUPTI_SUCCESS) on_.store(on);
  settle_names();
}

// A record tells a name, which may mean several kernels: then each launch's correlation id is asked for.
void Sampling::settle_names() {
  const bool wanted = on_.load() && kernels_.names_repeat();
  if (wanted == names_watched_.load()) return;
  watch_launches(kForNames, wanted);
  names_watched_.store(wanted);
}

void Sampling::watch_names() {
  const std::lock_guard lock(mutex_);
  settle_names();
}

void Sampling::untimed() {
  if (timing_ && !told_.exchange(true)) header_.sampling.store(1, std::memory_order_relaxed);
}

void Sampling::hold(Hold why, bool wanted) {
  if (state() == State::idle) return;
  const std::lock_guard lock(mutex_);
  const unsigned before = holds_;
  holds_ = wanted ? holds_ | why : holds_ & ~static_cast<unsigned>(why);
  if ((before != 0) == (holds_ != 0)) return;
  if (holds_ != 0) {
    switch_records(true);
    set(State::every);
  } else if (timing_) {
    set(State::open);  // and closed by the next launch, if nothing is left of the allowance
  } else {
    set(State::closed);
    switch_records(false);
  }
}

Sampling::Timed Sampling::graph_begins(std::uint64_t kernels, std::uint64_t long_ones, std::uint64_t nth) {
  const std::uint64_t cost = (kernels + kOfGraphs - 1) / kOfGraphs;
  // Next to a kernel that takes long a few others cost nothing, either.
  return begins(static_cast<std::int64_t>(cost),
                nth <= kFirstOfEach || (long_ones != 0 && cost <= 2 * long_ones));
}

Sampling::Timed Sampling::begins(std::int64_t cost, bool surely) {
  if (kernels_.names_repeat() && on() && !names_watched_.load(std::memory_order_relaxed)) watch_names();
  const State now = state();
  if (now == State::every || now == State::idle || !timing_) return Timed::as_it_is;
  if (surely) {
    begin_surely(cost);
    return Timed::surely;
  }
  if (now == State::open) {
    const std::int64_t left = allowance_.fetch_sub(cost, std::memory_order_relaxed);
    if (left > cost) return Timed::as_it_is;
    if (left > 0) return Timed::as_last;
    close();
  } else if (now == State::skipping) {
    const std::int64_t left = skip_.fetch_sub(cost, std::memory_order_relaxed);
    if (left > 0 && left <= cost) open_after_skip();
  }
  if (!told_.load(std::memory_order_relaxed) && !on()) untimed();
  return Timed::as_it_is;
}

void Sampling::begin_surely(std::int64_t cost) {
  const std::lock_guard lock(mutex_);
  surely_.fetch_add(1, std::memory_order_relaxed);
  allowance_.fetch_sub(cost, std::memory_order_relaxed);
  if (on()) return;
  switch_records(true);
  // The next launch that need not be timed switches them off again: those that follow may all need it.
  if (state() == State::closed) set(State::open);
}

void Sampling::ends(Timed timed) {
  if (timed == Timed::surely) surely_.fetch_sub(1, std::memory_order_release);
  if (timed == Timed::as_last) close();
}

void Sampling::close() {
  const std::lock_guard lock(mutex_);
  if (state() != State::open || allowance_.load() > 0 || surely_.load(std::memory_order_acquire) > 0) return;
  set(State::closed);
  switch_records(false);
}

void Sampling::open_after_skip() {
  const std::lock_guard lock(mutex_);
  if (state() != State::skipping) return;
  switch_records(true);
  set(State::open);
}

void Sampling::tick(std::uint64_t now_ns) {
  const std::uint64_t launches = header_.dispatches.load(std::memory_order_relaxed);
  const auto lately = static_cast<std::int64_t>(launches - last_launches_);
  const auto passed = static_cast<std::int64_t>(last_tick_ns_ != 0 ? now_ns - last_tick_ns_ : 0);
  last_launches_ = launches;
  last_tick_ns_ = now_ns;
  if (state() == State::idle) return;
  const std::lock_guard lock(mutex_);
  settle_names();
  if (!timing_ || state() == State::every) return;
  if (state() == State::skipping) {  // the program launches less than it did
    switch_records(true);
    set(State::open);
  }
  // What was timed beyond the allowance is owed, but no more than a process begins with.
  const std::int64_t left = allowance_.load(std::memory_order_relaxed);
  const std::int64_t credit = std::clamp(credit_ns_ + passed / kShare + left * kLaunchNs,
                                         -kMostAllowance * kLaunchNs, kMostAllowance * kLaunchNs);
  if (state() == State::open) {
    const std::int64_t allowed = credit / kLaunchNs;
    credit_ns_ = credit - allowed * kLaunchNs;
    allowance_.fetch_add(allowed - left, std::memory_order_relaxed);
    if (allowed > 0 || surely_.load(std::memory_order_acquire) > 0) return;
    set(State::closed);
    switch_records(false);
    return;
  }
  const std::int64_t window = std::max<std::int64_t>((credit - kSwitchNs) / kLaunchNs, 0);
  const bool opens = window >= kLeastWindow;
  credit_ns_ = credit - (opens ? window * kLaunchNs + kSwitchNs : 0);
  allowance_.fetch_add((opens ? window : 0) - left, std::memory_order_relaxed);
  if (!opens) return;
  // Not where this thread happens to wake: a program that waits for long in one place of its loop would have
  // only what follows timed.
  const std::int64_t most = std::min<std::int64_t>(lately - window, 1 << 16);
  if (most > 0) {
    skip_.store(std::uniform_int_distribution<std::int64_t>(1, most)(random_));
    set(State::skipping);
  } else {
    switch_records(true);
    set(State::open);
  }
}

}  // namespace kerncap::interpose::cuda
