#include "sim/hsa/hardware_queue.h"

#include <cstdlib>
#include <cstring>

#include "sim/hsa/fault_report.h"
#include "sim/hsa/futex.h"
#include "sim/hsa/runtime.h"
#include "sim/hsa/written.h"

namespace kerncap::sim::rt {
namespace {

using namespace kerncap::abi;  // NOLINT

constexpr unsigned kSpins = 400;  // pauses, of some 40 cycles
constexpr std::uint64_t kForeverNs = 3'600'000'000'000;
// A packet that is below the doorbell but not written yet belongs to another producer, who rings when it is.
constexpr std::uint64_t kInvalidPacketNs = 100'000;

template <typename P>
const P& as(const Packet& packet) {
  static_assert(sizeof(P) == kPacketBytes);
  return reinterpret_cast<const P&>(packet);
}

// Cycles of the core clock in ticks of the timestamp clock; a dispatch lasts at least one.
std::uint64_t ticks_of(std::uint64_t cycles, const DeviceModel& model) {
  constexpr std::uint64_t kTickMhz = kAgentClockHz / 1'000'000;
  return std::max<std::uint64_t>(1, (cycles * kTickMhz + model.clock_mhz - 1) / model.clock_mhz);
}

}  // namespace

HardwareQueue::HardwareQueue(Runtime* runtime, Agent* agent, std::uint32_t packets, std::uint32_t type,
                             QueueErrorCallback callback, void* data)
    : Queue(runtime, agent, packets, type, nullptr),
      callback_(callback),
      callback_data_(data),
      reported_as_(handle()) {}

HardwareQueue::~HardwareQueue() {
  inactivate();
  if (thread_.joinable()) thread_.join();
}

void HardwareQueue::start() {
  thread_ = std::thread([this] { loop(); });
}

void HardwareQueue::ring(std::uint64_t value) {
  std::uint64_t end = doorbell_end_.load();
  while (end < value + 1 && !doorbell_end_.compare_exchange_weak(end, value + 1)) {
  }
  wake();
}

// Either the thread sees the new kick and does not sleep, or we see that it sleeps. No system call while it
// runs.
void HardwareQueue::wake() {
  kick_.fetch_add(1);
  if (asleep_.load()) futex_wake_all(&kick_);
}

void HardwareQueue::sleep(std::uint32_t kick, std::uint64_t timeout_ns) {
  asleep_.store(true);
  if (!stop_.load()) futex_wait(&kick_, kick, timeout_ns);
  asleep_.store(false);
}

// Whether the doorbell is rung within some microseconds. A program that launches in a loop is then spared a
// system call a launch, to wake this thread.
bool HardwareQueue::rung_soon(std::uint64_t index) const {
  for (unsigned i = 0; i < kSpins; ++i) {
    if (index < doorbell_end_.load(std::memory_order_relaxed) || stop_.load(std::memory_order_relaxed))
      return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return false;
}

void HardwareQueue::inactivate() {
  stop_.store(true);
  wake();
  MultiWait::wake_all();
}

void HardwareQueue::set_profiling(bool enable) {
  if (enable)
    __atomic_fetch_or(&amd_->queue_properties, AMD_QUEUE_PROPERTIES_ENABLE_PROFILING, __ATOMIC_SEQ_CST);
  else
    __atomic_fetch_and(&amd_->queue_properties, ~std::uint32_t{AMD_QUEUE_PROPERTIES_ENABLE_PROFILING},
                       __ATOMIC_SEQ_CST);
}

bool HardwareQueue::last_dispatch(kerncap_sim_dispatch* out) const {
  std::lock_guard lock(dispatch_mutex_);
  if (dispatched_) *out = last_dispatch_;
  return dispatched_;
}

void HardwareQueue::loop() {
  while (!stop_.load()) {
    const std::uint32_t kick = kick_.load();
    const std::uint64_t index = read_index();
    if (index >= doorbell_end_.load()) {
      if (!rung_soon(index)) sleep(kick, kForeverNs);
      continue;
    }
    Packet* packet = slot(index);
    if (packet->type() == HSA_PACKET_TYPE_INVALID) {
      sleep(kick, kInvalidPacketNs);
      continue;
    }
    switch (process(*packet, index)) {
      case Result::done:
        break;
      case Result::stopped:
      case Result::failed:
        stop_.store(true);
        break;
    }
  }
}

HardwareQueue::Result HardwareQueue::process(const Packet& packet, std::uint64_t index) {
  // Packets run one after the other, which satisfies every barrier bit.
  const unsigned type = packet.type();
  const std::uint64_t start = std::max(runtime_->clock.now_ticks(), last_end_ticks_);
  Result result = Result::failed;
  switch (type) {
    case HSA_PACKET_TYPE_KERNEL_DISPATCH:
      return dispatch(packet, index);
    case HSA_PACKET_TYPE_BARRIER_AND:
      result = wait_barrier(packet, false);
      break;
    case HSA_PACKET_TYPE_BARRIER_OR:
      result = wait_barrier(packet, true);
      break;
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
      if (as<hsa_amd_barrier_value_packet_t>(packet).header.AmdFormat == HSA_AMD_PACKET_TYPE_BARRIER_VALUE) {
        result = wait_value(packet);
        break;
      }
      [[fallthrough]];
    default:
      complain(
          "queue %llu: packet %llu has type %u (first bytes %02x %02x %02x %02x), which this GPU does not "
          "run",
          static_cast<unsigned long long>(handle()->id), static_cast<unsigned long long>(index), type,
          packet.rest[0], packet.rest[1], packet.rest[2], packet.rest[3]);
      fail(HSA_STATUS_ERROR_INVALID_PACKET_FORMAT);
      return Result::failed;
  }
  if (result != Result::done) return result;
  const hsa_signal_t signal = as<hsa_barrier_and_packet_t>(packet).completion_signal;
  complete(signal, start, std::max(start, runtime_->clock.now_ticks()));
  return Result::done;
}

HardwareQueue::Result HardwareQueue::dispatch(const Packet& packet, std::uint64_t index) {
  WrittenRanges& tracked = WrittenRanges::instance();
  std::vector<WrittenRange> written;
  const std::uint64_t start = std::max(runtime_->clock.now_ticks(), last_end_ticks_);
  DispatchOutcome outcome;
  {
    KernelActivity running;
    outcome = agent_->gpu->run(&packet, reinterpret_cast<std::uint64_t>(&packet),
                               reinterpret_cast<std::uint64_t>(amd_), index,
                               tracked.enabled() ? &written : nullptr, &stop_);
  }
  if (!written.empty()) tracked.add(written);
  {
    std::lock_guard lock(dispatch_mutex_);
    last_dispatch_ = {};
    last_dispatch_.dispatch_id = index;
    last_dispatch_.cycles = outcome.cycles;
    last_dispatch_.wave_instructions = outcome.wave_instructions;
    last_dispatch_.waves = outcome.waves;
    last_dispatch_.core_clock_hz = std::uint64_t{agent_->model->clock_mhz} * 1'000'000;
    last_dispatch_.faulted = outcome.fault ? 1 : 0;
    dispatched_ = true;
  }
  if (outcome.fault) {
    if (stop_.load()) return Result::stopped;  // the queue is being destroyed; nobody wants to know
    // As on hardware, the completion signal stays as it is and the queue runs nothing more.
    const bool taken = report_fault(runtime_, agent_, *outcome.fault);
    if (callback_ == nullptr && !taken) std::abort();
    fail(status_of(outcome.fault->kind));
    return Result::failed;
  }
  const std::uint64_t end = start + ticks_of(outcome.cycles, *agent_->model);
  last_end_ticks_ = end;
  runtime_->clock.advance_to(end * kNanosecondsPerTick);
  complete(as<hsa_kernel_dispatch_packet_t>(packet).completion_signal, start, end);
  return Result::done;
}

// The slot is free before the signal says that the packet is done, so whoever waits for the signal finds
// room.
void HardwareQueue::complete(hsa_signal_t handle, std::uint64_t start_ticks, std::uint64_t end_ticks) {
  Signal* signal = Signal::from(handle);
  const std::uint64_t index = read_index();
  __atomic_store_n(&slot(index)->header, std::uint16_t{HSA_PACKET_TYPE_INVALID}, __ATOMIC_RELEASE);
  __atomic_store_n(&amd_->read_dispatch_id, index + 1, __ATOMIC_RELEASE);
  if (signal != nullptr) {
    if ((__atomic_load_n(&amd_->queue_properties, __ATOMIC_RELAXED) &
         AMD_QUEUE_PROPERTIES_ENABLE_PROFILING) != 0) {
      signal->amd.start_ts = start_ticks;
      signal->amd.end_ts = end_ticks;
    }
    signal->subtract(1);
  }
  if (on_progress_) on_progress_();
}

HardwareQueue::Result HardwareQueue::wait_barrier(const Packet& packet, bool any) {
  std::vector<SignalCondition> conditions;
  for (hsa_signal_t dep : as<hsa_barrier_and_packet_t>(packet).dep_signal)
    if (dep.handle != 0) conditions.push_back({Signal::from(dep), HSA_SIGNAL_CONDITION_EQ, 0});
  return wait_until(conditions, any);
}

HardwareQueue::Result HardwareQueue::wait_until(const std::vector<SignalCondition>& conditions, bool any) {
  std::vector<SignalRef> refs;
  for (const SignalCondition& c : conditions) refs.emplace_back(&runtime_->signals, c.signal->handle());
  while (!stop_.load()) {
    const std::uint32_t ticket = MultiWait::ticket();
    std::vector<SignalCondition> open;
    for (const SignalCondition& c : conditions)
      if (!c.holds()) open.push_back(c);
    if (open.empty() || (any && open.size() < conditions.size())) return Result::done;
    MultiWait::sleep(ticket, open, kForeverNs);
  }
  return Result::stopped;
}

HardwareQueue::Result HardwareQueue::wait_value(const Packet& packet) {
  const auto& barrier = as<hsa_amd_barrier_value_packet_t>(packet);
  if (barrier.signal.handle == 0) return Result::done;
  SignalRef signal(&runtime_->signals, barrier.signal);
  const auto condition = static_cast<hsa_signal_condition_t>(barrier.cond);
  while (!stop_.load()) {
    const std::uint32_t ticket = MultiWait::ticket();
    const std::int64_t raw = signal->load();
    if (condition_holds(condition, raw & barrier.mask, barrier.value)) return Result::done;
    // Any change of the raw value may make the masked one fit.
    MultiWait::sleep(ticket, {{signal.get(), HSA_SIGNAL_CONDITION_NE, raw}}, kForeverNs);
  }
  return Result::stopped;
}

// In the async-event thread, as ROCr does, so that the callback may destroy the queue.
void HardwareQueue::fail(hsa_status_t status) {
  if (callback_ == nullptr) return;
  runtime_->events.run_soon([callback = callback_, data = callback_data_, source = reported_as_.load(),
                             status] { callback(status, source, data); });
}

}  // namespace kerncap::sim::rt
