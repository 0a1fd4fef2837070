// Durations of dispatches, from signals of our own.
//
// A dispatch that has no completion signal gets one from a ring that belongs to its queue: no handler, no
// thread, one look at a value when it is collected. A dispatch that has one of the program's gets a stand-in
// whose handler copies the timestamps to the program's signal before completing it, so that the program sees
// what it would have seen.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "abi/hsa.h"
#include "interpose/hsa/kernel_registry.h"
#include "live/live_file.h"

namespace kerncap::interpose {

// Where durations go. One for the process.
class TimeSink {
 public:
  // Without `enabled`, nothing is recorded: dispatches are only followed to their end.
  TimeSink(live::LiveFile& live, bool enabled);

  // Timestamps as hsa_amd_profiling_get_dispatch_time gives them.
  // `nth`: which dispatch of its kernel, from 1.
  void record(std::uint32_t row, std::uint64_t nth, std::uint64_t start, std::uint64_t end);
  void lost(std::uint64_t count) {
    if (enabled_) live_.header().lost.fetch_add(count, std::memory_order_relaxed);
  }
  // Reads the signal's dispatch and records it.
  void record(std::uint32_t row, std::uint64_t nth, abi::hsa_agent_t agent, abi::hsa_signal_t signal);

 private:
  live::LiveFile& live_;
  const bool enabled_;
  double ns_per_tick_ = 1;
};

class TimingRing {
 public:
  TimingRing(TimeSink& sink, abi::hsa_agent_t agent, std::uint32_t queue_packets);
  ~TimingRing();
  TimingRing(const TimingRing&) = delete;
  TimingRing& operator=(const TimingRing&) = delete;

  // A signal for the next dispatch's packet; handle 0 when the ring is full or no signal can be had. Called
  // by one thread at a time (the queue's).
  abi::hsa_signal_t begin(const Kernel* kernel, std::uint32_t row, std::uint64_t nth);

  // Records whatever has completed. Returns at once when another thread is at it.
  void collect();

  [[nodiscard]] std::uint64_t in_flight() const {
    return tail_.load(std::memory_order_seq_cst) - head_.load(std::memory_order_seq_cst);
  }
  // The oldest dispatch that has not completed; null when there is none.
  const Kernel* oldest();

  // Collects until nothing is in flight or the time is up, and counts the rest as lost.
  void finish(std::uint64_t limit_ns);

 private:
  struct Slot {
    abi::hsa_signal_t signal{};
    const Kernel* kernel = nullptr;
    std::uint32_t row = 0;
    std::uint64_t nth = 0;
  };
  TimeSink& sink_;
  abi::hsa_agent_t agent_;
  const std::uint64_t capacity_;
  std::unique_ptr<Slot[]> slots_;
  std::mutex collecting_;
  std::atomic<std::uint64_t> head_{0};  // oldest not collected
  std::atomic<std::uint64_t> tail_{0};
};

class SignalProxies {
 public:
  explicit SignalProxies(TimeSink& sink) : sink_(sink) {}

  // A stand-in for `original`; `original` itself when none can be had (the dispatch is then lost to timing).
  // `in_flight` is raised now and lowered once the original has been completed; it must outlive that.
  abi::hsa_signal_t stand_in(abi::hsa_signal_t original, abi::hsa_agent_t agent, std::uint32_t row,
                             std::uint64_t nth, std::shared_ptr<std::atomic<std::uint64_t>> in_flight);

  // Completes `original` when `own` completes, with its timestamps. Used for a dispatch whose capture was
  // given up.
  bool forward_later(abi::hsa_signal_t own, abi::hsa_signal_t original, abi::hsa_agent_t agent,
                     std::uint32_t row, std::uint64_t nth,
                     std::shared_ptr<std::atomic<std::uint64_t>> in_flight);

  [[nodiscard]] std::uint64_t in_flight() const { return total_in_flight_.load(std::memory_order_relaxed); }

 private:
  struct Proxy {
    SignalProxies* pool = nullptr;
    abi::hsa_signal_t own{};
    abi::hsa_signal_t original{};
    abi::hsa_agent_t agent{};
    std::uint32_t row = 0;
    std::uint64_t nth = 0;
    bool pooled = true;
    std::shared_ptr<std::atomic<std::uint64_t>> in_flight;
  };
  bool arm(Proxy* proxy);
  static bool completed(abi::hsa_signal_value_t value, void* proxy);

  TimeSink& sink_;
  std::mutex mutex_;
  std::vector<Proxy*> free_;
  std::atomic<std::uint64_t> total_in_flight_{0};
};

// What the runtime would have written into `original`, then its completion.
void complete_like(abi::hsa_signal_t own, abi::hsa_signal_t original);

}  // namespace kerncap::interpose
