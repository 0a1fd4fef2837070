// Which launches are timed. A record of CUPTI's costs a program up to microseconds, so that one which
// launches without a pause would notice: of its launches a part is timed, in windows, as many as cost it a
// fiftieth of its time. Only where launches are counted by hooked functions; otherwise every launch has its
// record.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <random>

#include "interpose/cuda/kernels.h"
#include "live/live_file.h"

namespace kerncap::interpose::cuda {

class Sampling {
 public:
  Sampling(live::LiveHeader& header, const Kernels& kernels, bool timing)
      : header_(header), kernels_(kernels), timing_(timing) {}

  // From now on records are switched on and off here. They are off.
  void start();

  // Why every launch has a record.
  enum Hold : unsigned {
    kForCapture = 1,    // the captured launch is timed, whatever it is
    kForGraphs = 2,     // the program launches graphs whose kernels only their records count
    kForUncounted = 4,  // the program launches by calls that are not hooked
  };
  void hold(Hold why, bool wanted);

  // Around a launch, the `nth` of its kernel.
  enum class Timed { as_it_is, surely, as_last };
  Timed begins(const Kernel& kernel, std::uint64_t nth) {
    return begins(1, nth <= kFirstOfEach || kernel.takes_long.load(std::memory_order_relaxed));
  }
  // Around one of a graph: how many kernels it runs, how many of them take long, and the least `nth`.
  Timed graph_begins(std::uint64_t kernels, std::uint64_t long_ones, std::uint64_t nth);
  void ends(Timed timed);

  // Now and then, from one thread: what the program may be charged has grown.
  void tick(std::uint64_t now_ns);

  // Whether records are on now.
  [[nodiscard]] bool on() const { return on_.load(std::memory_order_relaxed); }

 private:
  enum class State : int {
    idle,      // records, if there are any, are not switched here
    every,     // held
    open,      // a window: `allowance_` launches have records
    closed,    // none has
    skipping,  // nor `skip_` launches more, then a window begins
  };
  // Charged for a record, and for switching records on and off.
  static constexpr std::int64_t kLaunchNs = 3'000;
  static constexpr std::uint64_t kOfGraphs = 3;  // records of a graph's kernels cost less: so many, as one
  static constexpr std::int64_t kSwitchNs = 3'000;
  static constexpr std::int64_t kShare = 50;             // of the program's time
  static constexpr std::int64_t kMostAllowance = 2'000;  // and what a process begins with
  static constexpr std::int64_t kLeastWindow = 32;
  static constexpr std::uint64_t kFirstOfEach = 32;  // launches of each kernel that are timed

  Timed begins(std::int64_t cost, bool surely);
  void begin_surely(std::int64_t cost);
  void close();
  void open_after_skip();
  void watch_names();
  // These with the mutex.
  void switch_records(bool on);
  void settle_names();
  void set(State state) { state_.store(state, std::memory_order_relaxed); }
  [[nodiscard]] State state() const { return state_.load(std::memory_order_relaxed); }
  void untimed();

  live::LiveHeader& header_;
  const Kernels& kernels_;
  const bool timing_;
  std::atomic<State> state_{State::idle};
  std::atomic<bool> on_{false};
  std::atomic<bool> names_watched_{false};
  std::atomic<bool> told_{false};  // that not every launch is timed
  std::atomic<std::int64_t> allowance_{0}, skip_{0};
  std::atomic<std::int64_t> surely_{0};  // launches under way that must get their record
  std::mutex mutex_;
  unsigned holds_ = 0;
  // The housekeeper's.
  std::int64_t credit_ns_ = 0;
  std::uint64_t last_tick_ns_ = 0, last_launches_ = 0;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace kerncap::interpose::cuda
