#include "replay/launcher.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "replay/error.h"

namespace kerncap::replay {
namespace {

constexpr std::uint32_t kQueuePackets = 64;

constexpr std::uint16_t header_of(abi::hsa_packet_type_t type) {
  return static_cast<std::uint16_t>(
      type | 1 << abi::HSA_PACKET_HEADER_BARRIER |
      abi::HSA_FENCE_SCOPE_SYSTEM << abi::HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
      abi::HSA_FENCE_SCOPE_SYSTEM << abi::HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

}  // namespace

Launcher::Launcher(Runtime& runtime, const Agent& agent, bool cooperative, bool timestamps)
    : runtime_(runtime),
      agent_(agent),
      timestamps_(timestamps && runtime.amd.hsa_amd_profiling_get_dispatch_time_fn != nullptr) {
  const auto type = cooperative ? abi::HSA_QUEUE_TYPE_COOPERATIVE : abi::HSA_QUEUE_TYPE_MULTI;
  runtime_.check(runtime_.core.hsa_queue_create_fn(agent_.handle, kQueuePackets, type, on_queue_error, this,
                                                   UINT32_MAX, UINT32_MAX, &queue_),
                 "creating a queue");
  runtime_.check(runtime_.core.hsa_signal_create_fn(1, 0, nullptr, &signal_), "creating a signal");
  if (runtime_.amd.hsa_amd_profiling_set_profiler_enabled_fn != nullptr) {
    runtime_.check(runtime_.amd.hsa_amd_profiling_set_profiler_enabled_fn(queue_, 1),
                   "asking for timestamps");
  }
  if (runtime_.amd.hsa_amd_register_system_event_handler_fn != nullptr) {
    runtime_.amd.hsa_amd_register_system_event_handler_fn(on_event, this);  // refused if one is there already
  }
}

Launcher::~Launcher() {
  if (error_ != 0) return;  // the process is about to end; a failed queue may not destroy cleanly
  if (flush_buffer_ != nullptr) runtime_.amd.hsa_amd_memory_pool_free_fn(flush_buffer_);
  if (signal_.handle != 0) runtime_.core.hsa_signal_destroy_fn(signal_);
  if (queue_ != nullptr) runtime_.core.hsa_queue_destroy_fn(queue_);
}

void Launcher::on_queue_error(abi::hsa_status_t status, abi::hsa_queue_t*, void* self) {
  static_cast<Launcher*>(self)->error_ = status;
}

abi::hsa_status_t Launcher::on_event(const abi::hsa_amd_event_t* event, void* data) {
  auto* self = static_cast<Launcher*>(data);
  if (event->event_type == abi::HSA_AMD_GPU_MEMORY_FAULT_EVENT) {
    self->fault_address_ = event->memory_fault.virtual_address;
    self->fault_reason_ = event->memory_fault.fault_reason_mask;
    self->error_ = abi::HSA_STATUS_ERROR_MEMORY_FAULT;
    return abi::HSA_STATUS_SUCCESS;
  }
  self->error_ = abi::HSA_STATUS_ERROR_EXCEPTION;
  return abi::HSA_STATUS_SUCCESS;
}

std::uint64_t Launcher::reserve_slot() {
  const std::uint64_t slot = runtime_.core.hsa_queue_add_write_index_screlease_fn(queue_, 1);
  return slot;  // one packet is in flight at a time: there is always room
}

void Launcher::submit(std::uint64_t slot, const void* packet, std::uint16_t header, std::uint16_t setup) {
  auto* const at = static_cast<unsigned char*>(queue_->base_address) + slot % queue_->size * 64;
  std::memcpy(at + 4, static_cast<const unsigned char*>(packet) + 4, 60);
  const std::uint32_t head = header | static_cast<std::uint32_t>(setup) << 16;
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(at), head, __ATOMIC_RELEASE);
  runtime_.core.hsa_signal_store_screlease_fn(queue_->doorbell_signal, static_cast<std::int64_t>(slot));
}

void Launcher::wait(double limit_seconds, const char* what) {
  const auto start = std::chrono::steady_clock::now();
  const auto slice = static_cast<std::uint64_t>(50e6 / runtime_.ns_per_tick);  // 50 ms
  const auto state = timestamps_ ? abi::HSA_WAIT_STATE_BLOCKED : abi::HSA_WAIT_STATE_ACTIVE;
  while (runtime_.core.hsa_signal_wait_scacquire_fn(signal_, abi::HSA_SIGNAL_CONDITION_LT, 1, slice, state) >=
         1) {
    if (error_ != 0) throw_fault();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (passed.count() > limit_seconds) {
      char text[64];
      std::snprintf(text, sizeof(text), " did not end within %.3g s", limit_seconds);
      throw ReplayError(ErrorClass::timeout, what + std::string(text));
    }
  }
  if (error_ != 0) throw_fault();
}

void Launcher::throw_fault() const {
  std::uint64_t address = fault_address_;
  std::string text;
  if (runtime_.sim.last_fault != nullptr) {
    std::vector<char> buffer(16384);
    std::uint64_t touched = 0;
    runtime_.sim.last_fault(buffer.data(), buffer.size(), &touched);
    text = buffer.data();
    if (touched != 0) address = touched;
  }
  if (text.empty()) {
    text = runtime_.status_text(static_cast<abi::hsa_status_t>(error_.load()));
    if (address != 0) text += " at " + hex(address);
  }
  throw ReplayError(ErrorClass::fault, text, address);
}

std::uint64_t Launcher::system_clock_ns() const {
  std::uint64_t ticks = 0;
  runtime_.core.hsa_system_get_info_fn(abi::HSA_SYSTEM_INFO_TIMESTAMP, &ticks);
  return static_cast<std::uint64_t>(static_cast<double>(ticks) * runtime_.ns_per_tick);
}

std::vector<DispatchTime> Launcher::run(const Launch& launch, std::uint64_t count) {
  std::vector<DispatchTime> times;
  for (std::uint64_t i = 0; i < count; ++i) times.push_back(run_one(launch));
  return times;
}

DispatchTime Launcher::run_one(const Launch& launch) {
  runtime_.core.hsa_signal_store_relaxed_fn(signal_, 1);
  abi::hsa_kernel_dispatch_packet_t packet = launch.packet;
  packet.completion_signal = signal_;
  packet.reserved2 = 0;
  const std::uint64_t slot = reserve_slot();
  DispatchTime result;
  result.submitted_ns = system_clock_ns();
  submit(slot, &packet, header_of(abi::HSA_PACKET_TYPE_KERNEL_DISPATCH), packet.setup);
  wait(launch.limit_seconds, "the dispatch");
  result.seen_ns = system_clock_ns();
  abi::hsa_amd_profiling_dispatch_time_t time{};
  if (!timestamps_ || runtime_.amd.hsa_amd_profiling_get_dispatch_time_fn(agent_.handle, signal_, &time) !=
                          abi::HSA_STATUS_SUCCESS) {
    return result;
  }
  const auto ns = [&](std::uint64_t ticks) {
    return static_cast<std::uint64_t>(static_cast<double>(ticks) * runtime_.ns_per_tick);
  };
  result.start_ns = ns(time.start);
  // The difference first: a double does not hold every tick since the start of the machine.
  result.end_ns = time.end <= time.start ? ns(time.end) : result.start_ns + ns(time.end - time.start);
  return result;
}

RangeSet Launcher::take_written() {
  if (runtime_.sim.take_written == nullptr) return {};
  std::vector<kerncap_sim_range> found(4096);
  std::size_t count = runtime_.sim.take_written(found.data(), found.size());
  while (count > found.size()) {
    found.resize(count);
    count = runtime_.sim.take_written(found.data(), found.size());
  }
  std::vector<Range> ranges;
  ranges.reserve(count);
  for (std::size_t i = 0; i < count; ++i) ranges.push_back({found[i].base, found[i].size});
  return RangeSet(std::move(ranges));
}

void Launcher::track_writes(bool enable) {
  if (runtime_.sim.track_writes != nullptr) runtime_.sim.track_writes(enable);
}

void Launcher::flush_caches(std::uint64_t bytes) {
  if (flush_buffer_ == nullptr) {
    runtime_.check(runtime_.amd.hsa_amd_memory_pool_allocate_fn(agent_.coarse, bytes, 0, &flush_buffer_),
                   "allocating the buffer that displaces cached data");
    flush_bytes_ = bytes;
  }
  runtime_.check(runtime_.amd.hsa_amd_memory_fill_fn(flush_buffer_, 0x5A5A5A5A, flush_bytes_ / 4),
                 "displacing cached data");
}

void Launcher::settle() {
  runtime_.core.hsa_signal_store_relaxed_fn(signal_, 1);
  abi::hsa_barrier_and_packet_t packet{};
  packet.completion_signal = signal_;
  submit(reserve_slot(), &packet, header_of(abi::HSA_PACKET_TYPE_BARRIER_AND), 0);
  wait(60, "a barrier");
}

}  // namespace kerncap::replay
