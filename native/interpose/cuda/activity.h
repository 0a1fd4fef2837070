// Times of kernels from CUPTI's activity records. A record names its kernel; where that is not enough,
// launches are watched (callbacks.cpp) and matched with their records by correlation id.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "abi/cuda_cupti.h"
#include "interpose/cuda/kernels.h"
#include "live/live_file.h"

namespace kerncap::interpose::cuda {

// A graph's kernels by their names, those of one name in the order that they run in.
using GraphNames = std::unordered_map<std::string, std::vector<Kernel*>>;

class Activity {
 public:
  Activity(live::LiveFile& live, Kernels& kernels, bool timing);

  // False, and why, where CUPTI refuses.
  bool start(std::string* why);
  // Every launch has a record from now on.
  bool record_all(std::string* why);
  // From now on it is not by their records that launches are counted.
  void launches_are_counted() { counted_.store(true); }
  // Whether records came of launches that nobody had counted, for all that.
  [[nodiscard]] bool found_uncounted() const { return found_uncounted_.load(std::memory_order_relaxed); }
  // A launch that its caller counted: the nth of its kernel. Any thread.
  void launched(std::uint32_t correlation, Kernel& kernel, std::uint64_t nth) {
    expect(correlation, &kernel, nth);
  }
  // One that nobody counted: its record does.
  void uncounted(std::uint32_t correlation) { expect(correlation, nullptr, 0); }
  // The launch came to nothing.
  void withdrawn(std::uint32_t correlation);
  // The same for the launch of a graph and the `kernels` of it that were counted: their records have its
  // correlation id. `names` (null: not known) says whose they are.
  void graph_launched(std::uint32_t correlation, std::uint32_t kernels,
                      std::shared_ptr<const GraphNames> names);
  void graph_withdrawn(std::uint32_t correlation);
  // A launch of a graph whose kernels nobody has counted: their records do.
  void graph_uncounted(std::uint32_t correlation);

  // Has CUPTI hand over what is complete; `forced`, at the end of the process, whatever there is.
  void flush(bool forced);
  [[nodiscard]] std::uint64_t pending() const { return pending_.load(std::memory_order_relaxed); }
  // What never got a record is lost.
  void finish();

  // Keeps the times of one launch.
  void watch(std::uint32_t correlation);
  bool watched(std::uint64_t* start, std::uint64_t* end) const;

  void take(const std::uint8_t* buffer, std::size_t valid_bytes);
  // CUPTI had no room for so many records.
  void dropped(std::uint64_t records);

 private:
  // Constant memory however many launches are in flight: an older launch that still waits for its record when
  // its place is needed counts as lost.
  static constexpr std::uint32_t kSlots = 1u << 18;
  struct Slot {
    std::atomic<std::uint32_t> correlation{0};
    Kernel* kernel = nullptr;  // null: not counted
    std::uint64_t nth = 0;
  };
  // A launch of a graph some of whose kernels still have records to come. With more of them than that, the
  // oldest counts as lost.
  static constexpr std::size_t kMostGraphLaunches = 1u << 16;
  struct GraphLaunch {
    std::uint32_t remaining = 0;
    std::shared_ptr<const GraphNames> names;
    std::unordered_map<std::string, std::size_t> seen;  // of names that several kernels have
  };
  // Whether the record is of a kernel that was counted when its graph was launched; `kernel`: which, where
  // that is known.
  bool take_of_graph(const abi::CUpti_ActivityKernelPrefix& record, Kernel*& kernel);
  void expect(std::uint32_t correlation, Kernel* kernel, std::uint64_t nth);
  bool is_counted(const abi::CUpti_ActivityKernelPrefix& record, const Kernel& kernel);
  void kernel_record(const abi::CUpti_ActivityKernelPrefix& record);
  std::uint64_t count(const Kernel& kernel, const abi::CUpti_ActivityKernelPrefix& record);

  live::LiveFile& live_;
  Kernels& kernels_;
  const bool timing_;
  std::atomic<bool> counted_{false}, found_uncounted_{false};
  std::unique_ptr<Slot[]> slots_;
  static constexpr std::uint32_t kUncountedGraphs = 1u << 14;
  std::unique_ptr<std::atomic<std::uint32_t>[]> uncounted_graphs_;  // the last ones, by correlation id
  std::mutex graphs_mutex_;
  std::map<std::uint32_t, GraphLaunch> graphs_;  // by correlation id: the oldest first
  std::atomic<std::uint64_t> pending_{0};
  std::atomic<std::uint32_t> watched_{0};
  std::atomic<std::uint64_t> watched_start_{0}, watched_end_{0};
};

}  // namespace kerncap::interpose::cuda
