#include "interpose/cuda/activity.h"

#include <cstdlib>
#include <limits>

#include "interpose/cuda/driver.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

// Small enough that figures are not old when a buffer is full, large enough that handing over costs nothing.
constexpr std::size_t kBufferBytes = 256u << 10;
// Kernels that take so long are timed at every launch: next to them it costs nothing.
constexpr std::uint64_t kLongNs = 300'000;
constexpr std::uint64_t kAbsurdNs = 24ull * 3600 * 1'000'000'000;

std::atomic<Activity*> receiver{nullptr};

void request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  *bytes = *buffer != nullptr ? kBufferBytes : 0;
  *max_records = 0;
}

void complete(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
              std::size_t valid_bytes) {
  if (Activity* activity = receiver.load()) {
    activity->take(buffer, valid_bytes);
    std::size_t dropped = 0;
    if (cupti().cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS && dropped != 0)
      activity->dropped(dropped);
  }
  std::free(buffer);
}

std::uint32_t work_items(std::int64_t blocks, std::int64_t threads) {
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>(blocks * threads, std::numeric_limits<std::uint32_t>::max()));
}

bool accepted(CUptiResult result, std::string* why) {
  if (result == CUPTI_SUCCESS) return true;
  const char* text = nullptr;
  cupti().cuptiGetResultString(result, &text);
  *why = std::string("CUPTI gives no records of kernels: ") + (text != nullptr ? text : "unknown reason");
  return false;
}

}  // namespace

Activity::Activity(live::LiveFile& live, Kernels& kernels, bool timing)
    : live_(live),
      kernels_(kernels),
      timing_(timing),
      slots_(std::make_unique<Slot[]>(kSlots)),
      uncounted_graphs_(std::make_unique<std::atomic<std::uint32_t>[]>(kUncountedGraphs)) {}

bool Activity::start(std::string* why) {
  receiver.store(this);
  return accepted(cupti().cuptiActivityRegisterCallbacks(request, complete), why);
}

bool Activity::record_all(std::string* why) {
  return accepted(cupti().cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), why);
}

void Activity::expect(std::uint32_t correlation, Kernel* kernel, std::uint64_t nth) {
  Slot& slot = slots_[correlation % kSlots];
  if (slot.correlation.exchange(0, std::memory_order_acq_rel) != 0) {
    live_.header().lost.fetch_add(1, std::memory_order_relaxed);
  } else {
    pending_.fetch_add(1, std::memory_order_relaxed);
  }
  slot.kernel = kernel;
  slot.nth = nth;
  slot.correlation.store(correlation, std::memory_order_release);
}

void Activity::withdrawn(std::uint32_t correlation) {
  std::uint32_t expected = correlation;
  if (slots_[correlation % kSlots].correlation.compare_exchange_strong(expected, 0))
    pending_.fetch_sub(1, std::memory_order_relaxed);
}

void Activity::graph_launched(std::uint32_t correlation, std::uint32_t kernels,
                              std::shared_ptr<const GraphNames> names) {
  if (kernels == 0) return;
  const std::lock_guard lock(graphs_mutex_);
  graphs_[correlation] = {kernels, std::move(names), {}};
  pending_.fetch_add(kernels, std::memory_order_relaxed);
  if (graphs_.size() <= kMostGraphLaunches) return;
  const std::uint32_t overdue = graphs_.begin()->second.remaining;
  graphs_.erase(graphs_.begin());
  pending_.fetch_sub(overdue, std::memory_order_relaxed);
  live_.header().lost.fetch_add(overdue, std::memory_order_relaxed);
}

void Activity::graph_withdrawn(std::uint32_t correlation) {
  const std::lock_guard lock(graphs_mutex_);
  const auto launch = graphs_.find(correlation);
  if (launch == graphs_.end()) return;
  pending_.fetch_sub(launch->second.remaining, std::memory_order_relaxed);
  graphs_.erase(launch);
}

void Activity::graph_uncounted(std::uint32_t correlation) {
  uncounted_graphs_[correlation % kUncountedGraphs].store(correlation, std::memory_order_release);
}

bool Activity::take_of_graph(const CUpti_ActivityKernelPrefix& record, Kernel*& kernel) {
  if (record.graphNodeId == 0) return false;
  const std::lock_guard lock(graphs_mutex_);
  const auto found = graphs_.find(record.correlationId);
  if (found == graphs_.end()) return false;
  GraphLaunch& launch = found->second;
  const std::string name = record.name != nullptr ? record.name : "";
  if (launch.names != nullptr && launch.names->contains(name)) {
    const std::vector<Kernel*>& named = launch.names->at(name);
    kernel = named.size() == 1 ? named[0] : named[launch.seen[name]++ % named.size()];
  }
  pending_.fetch_sub(1, std::memory_order_relaxed);
  if (--launch.remaining == 0) graphs_.erase(found);
  return true;
}

void Activity::take(const std::uint8_t* buffer, std::size_t valid_bytes) {
  CUpti_Activity* record = nullptr;
  while (cupti().cuptiActivityGetNextRecord(const_cast<std::uint8_t*>(buffer), valid_bytes, &record) ==
         CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
      kernel_record(*reinterpret_cast<const CUpti_ActivityKernelPrefix*>(record));
  }
}

// A launch that nobody told of when it was made.
std::uint64_t Activity::count(const Kernel& kernel, const CUpti_ActivityKernelPrefix& record) {
  live::Row& row = live_.row(kernel.row);
  const std::uint32_t grid[3] = {work_items(record.gridX, record.blockX),
                                 work_items(record.gridY, record.blockY),
                                 work_items(record.gridZ, record.blockZ)};
  const std::uint32_t block[3] = {static_cast<std::uint32_t>(record.blockX),
                                  static_cast<std::uint32_t>(record.blockY),
                                  static_cast<std::uint32_t>(record.blockZ)};
  live_.header().dispatches.fetch_add(1, std::memory_order_relaxed);
  live::count_dispatch(row, grid, block, static_cast<std::uint32_t>(record.dynamicSharedMemory),
                       live::coarse_monotonic_ns());
  row.calls.fetch_add(1, std::memory_order_relaxed);
  return kernel.calls->count();
}

// Whether the launch was counted when it was made.
bool Activity::is_counted(const CUpti_ActivityKernelPrefix& record, const Kernel& kernel) {
  if (!counted_.load(std::memory_order_relaxed)) return false;
  const std::uint32_t correlation = record.correlationId;
  if (record.graphNodeId != 0)
    return uncounted_graphs_[correlation % kUncountedGraphs].load(std::memory_order_acquire) != correlation;
  const live::Row& row = live_.row(kernel.row);
  if (row.timed.load() < row.calls.load()) return true;
  found_uncounted_.store(true, std::memory_order_relaxed);  // made by a call that is not hooked
  return false;
}

void Activity::kernel_record(const CUpti_ActivityKernelPrefix& record) {
  live::LiveHeader& header = live_.header();
  Slot& slot = slots_[record.correlationId % kSlots];
  Kernel* kernel = nullptr;
  std::uint64_t nth = 0;
  const std::uint32_t waiting = slot.correlation.load(std::memory_order_acquire);
  std::uint32_t expected = record.correlationId;
  if (record.graphNodeId == 0 && waiting == record.correlationId && waiting != 0 &&
      slot.correlation.compare_exchange_strong(expected, 0)) {
    kernel = slot.kernel, nth = slot.nth;
    pending_.fetch_sub(1, std::memory_order_relaxed);
    if (kernel == nullptr) {
      kernel = kernels_.find_by_name(record);
      nth = count(*kernel, record);
    }
  } else if (take_of_graph(record, kernel)) {
    if (kernel == nullptr) kernel = kernels_.find_by_name(record);
  } else {
    kernel = kernels_.find_by_name(record);
    if (!is_counted(record, *kernel)) nth = count(*kernel, record);
  }
  if (watched_.load(std::memory_order_relaxed) == record.correlationId && record.correlationId != 0) {
    watched_start_.store(record.start);
    watched_end_.store(record.end);
  }
  if (!timing_) return;
  if (record.end == 0) {  // the process ends before the kernel does
    header.lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (record.start == 0 || record.end <= record.start || record.end - record.start > kAbsurdNs) {
    header.rejected.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  live::Row& times = live_.row(kernel->row);
  live::count_time(times, record.end - record.start, nth);
  header.timed.fetch_add(1, std::memory_order_relaxed);
  const bool takes_long =
      times.total_ns.load(std::memory_order_relaxed) >= times.timed.load(std::memory_order_relaxed) * kLongNs;
  if (kernel->takes_long.load(std::memory_order_relaxed) != takes_long)
    kernel->takes_long.store(takes_long, std::memory_order_relaxed);
}

void Activity::dropped(std::uint64_t records) {
  if (!counted_.load()) live_.header().dispatches.fetch_add(records, std::memory_order_relaxed);
  live_.header().lost.fetch_add(records, std::memory_order_relaxed);
}

void Activity::flush(bool forced) { cupti().cuptiActivityFlushAll(forced ? 1 : 0); }

void Activity::finish() {
  live::LiveHeader& header = live_.header();
  const auto known =
      static_cast<std::int64_t>(header.timed.load() + header.rejected.load() + header.lost.load());
  std::int64_t missing = 0;
  if (!counted_.load()) {
    missing = static_cast<std::int64_t>(pending_.load());
  } else if (header.sampling.load() == 0) {
    missing = static_cast<std::int64_t>(header.dispatches.load()) - known;
  }
  if (timing_ && missing > 0)
    header.lost.fetch_add(static_cast<std::uint64_t>(missing), std::memory_order_relaxed);
  receiver.store(nullptr);
}

void Activity::watch(std::uint32_t correlation) {
  watched_start_.store(0);
  watched_end_.store(0);
  watched_.store(correlation);
}

bool Activity::watched(std::uint64_t* start, std::uint64_t* end) const {
  *start = watched_start_.load();
  *end = watched_end_.load();
  return *end > *start;
}

}  // namespace kerncap::interpose::cuda
