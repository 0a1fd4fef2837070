#include "interpose/hsa/timing.h"

#include <time.h>

#include <algorithm>
#include <bit>

#include "interpose/hsa/api.h"

namespace kerncap::interpose {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

constexpr std::uint64_t kAbsurdNs = 24ull * 3600 * 1'000'000'000;
// More than a queue holds can be in flight: the runtime keeps what does not fit.
constexpr std::uint64_t kLeastSlots = 1024;
constexpr std::uint64_t kMostSlots = 65536;

hsa_signal_value_t value_of(hsa_signal_t signal) { return api().core.hsa_signal_load_scacquire_fn(signal); }

}  // namespace

TimeSink::TimeSink(live::LiveFile& live, bool enabled) : live_(live), enabled_(enabled) {
  std::uint64_t frequency = 0;
  if (api().core.hsa_system_get_info_fn != nullptr &&
      api().core.hsa_system_get_info_fn(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency) ==
          HSA_STATUS_SUCCESS &&
      frequency != 0) {
    ns_per_tick_ = 1e9 / static_cast<double>(frequency);
  }
}

void TimeSink::record(std::uint32_t row, std::uint64_t nth, std::uint64_t start, std::uint64_t end) {
  if (!enabled_) return;
  live::LiveHeader& header = live_.header();
  if (start != 0 && end > start) {
    const auto ns = static_cast<std::uint64_t>(static_cast<double>(end - start) * ns_per_tick_ + 0.5);
    if (ns != 0 && ns < kAbsurdNs) {
      live::count_time(live_.row(row), ns, nth);
      header.timed.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  header.rejected.fetch_add(1, std::memory_order_relaxed);
}

void TimeSink::record(std::uint32_t row, std::uint64_t nth, hsa_agent_t agent, hsa_signal_t signal) {
  if (!enabled_) return;
  hsa_amd_profiling_dispatch_time_t time{};
  const bool known =
      api().amd.hsa_amd_profiling_get_dispatch_time_fn(agent, signal, &time) == HSA_STATUS_SUCCESS;
  record(row, nth, known ? time.start : 0, known ? time.end : 0);
}

TimingRing::TimingRing(TimeSink& sink, hsa_agent_t agent, std::uint32_t queue_packets)
    : sink_(sink),
      agent_(agent),
      capacity_(std::bit_ceil(std::clamp<std::uint64_t>(2ull * queue_packets, kLeastSlots, kMostSlots))),
      slots_(std::make_unique<Slot[]>(capacity_)) {}

TimingRing::~TimingRing() {
  // Signals that are still in flight belong to the packet processor and stay.
  const std::uint64_t head = head_.load(), tail = tail_.load();
  for (std::uint64_t i = 0; i < capacity_; ++i) {
    const bool busy = ((i - head) & (capacity_ - 1)) < tail - head;
    if (slots_[i].signal.handle != 0 && !busy) api().core.hsa_signal_destroy_fn(slots_[i].signal);
  }
}

hsa_signal_t TimingRing::begin(const Kernel* kernel, std::uint32_t row, std::uint64_t nth) {
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  if (tail - head_.load(std::memory_order_acquire) >= capacity_) {
    collect();
    if (tail - head_.load(std::memory_order_acquire) >= capacity_) return {};
  }
  Slot& slot = slots_[tail & (capacity_ - 1)];
  if (slot.signal.handle == 0) {
    const auto create = api().amd.hsa_amd_signal_create_fn;
    const hsa_status_t status = create != nullptr
                                    ? create(1, 0, nullptr, HSA_AMD_SIGNAL_AMD_GPU_ONLY, &slot.signal)
                                    : api().core.hsa_signal_create_fn(1, 0, nullptr, &slot.signal);
    if (status != HSA_STATUS_SUCCESS) {
      slot.signal = {};
      return {};
    }
  } else {
    api().core.hsa_signal_store_relaxed_fn(slot.signal, 1);
  }
  slot.kernel = kernel;
  slot.row = row;
  slot.nth = nth;
  tail_.store(tail + 1, std::memory_order_seq_cst);
  return slot.signal;
}

void TimingRing::collect() {
  const std::unique_lock lock(collecting_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  std::uint64_t head = head_.load(std::memory_order_relaxed);
  const std::uint64_t tail = tail_.load(std::memory_order_acquire);
  for (; head != tail; ++head) {
    const Slot& slot = slots_[head & (capacity_ - 1)];
    if (value_of(slot.signal) > 0) break;
    sink_.record(slot.row, slot.nth, agent_, slot.signal);
    head_.store(head + 1, std::memory_order_seq_cst);
  }
}

const Kernel* TimingRing::oldest() {
  const std::lock_guard lock(collecting_);
  const std::uint64_t head = head_.load(), tail = tail_.load();
  return head == tail ? nullptr : slots_[head & (capacity_ - 1)].kernel;
}

void TimingRing::finish(std::uint64_t limit_ns) {
  const std::uint64_t deadline = live::monotonic_ns() + limit_ns;
  for (;;) {
    collect();
    if (in_flight() == 0) return;
    if (live::monotonic_ns() >= deadline) break;
    const timespec pause{0, 200'000};
    ::nanosleep(&pause, nullptr);
  }
  // One that completed behind one that did not is still a time.
  const std::lock_guard lock(collecting_);
  const std::uint64_t head = head_.load(), tail = tail_.load();
  for (std::uint64_t i = head; i != tail; ++i) {
    const Slot& slot = slots_[i & (capacity_ - 1)];
    if (value_of(slot.signal) > 0) {
      sink_.lost(1);
    } else {
      sink_.record(slot.row, slot.nth, agent_, slot.signal);
    }
    slots_[i & (capacity_ - 1)].signal = {};  // left to the packet processor
  }
  head_.store(tail);
}

void complete_like(hsa_signal_t own, hsa_signal_t original) {
  // amd_signal_t: the handle of a signal is its address.
  const auto* from = reinterpret_cast<const amd_signal_t*>(own.handle);
  auto* to = reinterpret_cast<amd_signal_t*>(original.handle);
  to->start_ts = from->start_ts;
  to->end_ts = from->end_ts;
  // A packet's completion lowers the value by one.
  api().core.hsa_signal_subtract_screlease_fn(original, 1);
}

hsa_signal_t SignalProxies::stand_in(hsa_signal_t original, hsa_agent_t agent, std::uint32_t row,
                                     std::uint64_t nth,
                                     std::shared_ptr<std::atomic<std::uint64_t>> in_flight) {
  Proxy* proxy = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      proxy = free_.back();
      free_.pop_back();
    }
  }
  if (proxy == nullptr) {
    hsa_signal_t own{};
    if (api().core.hsa_signal_create_fn(1, 0, nullptr, &own) != HSA_STATUS_SUCCESS) {
      sink_.lost(1);
      return original;
    }
    proxy =
        std::make_unique<Proxy>().release();  // the handler returns it to the pool, which keeps it for good
    proxy->own = own;
  } else {
    api().core.hsa_signal_store_relaxed_fn(proxy->own, 1);
  }
  proxy->pool = this;
  proxy->original = original;
  proxy->agent = agent;
  proxy->row = row;
  proxy->nth = nth;
  proxy->in_flight = std::move(in_flight);
  const hsa_signal_t own = proxy->own;
  if (arm(proxy)) return own;
  sink_.lost(1);
  return original;
}

bool SignalProxies::forward_later(hsa_signal_t own, hsa_signal_t original, hsa_agent_t agent,
                                  std::uint32_t row, std::uint64_t nth,
                                  std::shared_ptr<std::atomic<std::uint64_t>> in_flight) {
  auto proxy = std::make_unique<Proxy>();
  proxy->pool = this;
  proxy->own = own;
  proxy->original = original;
  proxy->agent = agent;
  proxy->row = row;
  proxy->nth = nth;
  proxy->pooled = false;
  proxy->in_flight = std::move(in_flight);
  return arm(proxy.release());
}

bool SignalProxies::arm(Proxy* proxy) {
  proxy->in_flight->fetch_add(1, std::memory_order_seq_cst);
  total_in_flight_.fetch_add(1, std::memory_order_relaxed);
  if (api().amd.hsa_amd_signal_async_handler_fn(proxy->own, HSA_SIGNAL_CONDITION_LT, 1,
                                                &SignalProxies::completed, proxy) == HSA_STATUS_SUCCESS) {
    return true;
  }
  proxy->in_flight->fetch_sub(1, std::memory_order_seq_cst);
  total_in_flight_.fetch_sub(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (proxy->pooled) free_.push_back(proxy);
  return false;
}

bool SignalProxies::completed(hsa_signal_value_t, void* data) {
  auto* proxy = static_cast<Proxy*>(data);
  SignalProxies* pool = proxy->pool;
  pool->sink_.record(proxy->row, proxy->nth, proxy->agent, proxy->own);
  if (proxy->original.handle != 0) complete_like(proxy->own, proxy->original);
  proxy->in_flight->fetch_sub(1, std::memory_order_seq_cst);
  proxy->in_flight.reset();
  pool->total_in_flight_.fetch_sub(1, std::memory_order_relaxed);
  if (!proxy->pooled) {
    delete proxy;  // NOLINT(cppcoreguidelines-owning-memory): made in forward_later
    return false;
  }
  const std::lock_guard lock(pool->mutex_);
  pool->free_.push_back(proxy);
  return false;
}

}  // namespace kerncap::interpose
