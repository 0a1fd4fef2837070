#include "interpose/hsa/queue.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "interpose/hsa/api.h"
#include "interpose/hsa/capture.h"
#include "interpose/hsa/capture_controller.h"
#include "interpose/hsa/process.h"

namespace kerncap::interpose {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

constexpr std::uint64_t kInjected = 0x6b65726e63617021;  // reserved2 of a barrier packet of ours
// Of each queue so many are timed for LiveHeader::own_ns, and then one in so many, which stands for all of
// them. What a kernel's first dispatch takes is added as it is: it happens once.
constexpr std::uint64_t kSampleBatches = 64;

constexpr std::uint16_t kBarrierHeader = HSA_PACKET_TYPE_BARRIER_AND | 1 << HSA_PACKET_HEADER_BARRIER |
                                         HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                                         HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;

}  // namespace

Packet barrier_packet(hsa_signal_t dependency, hsa_signal_t completion) {
  Packet packet;
  std::memset(&packet, 0, sizeof packet);
  packet.barrier.header = kBarrierHeader;
  packet.barrier.dep_signal[0] = dependency;
  packet.barrier.completion_signal = completion;
  return packet;
}

InterceptQueue::InterceptQueue(Process& process, hsa_queue_t* queue, const AgentInfo& agent)
    : process_(process),
      queue_(queue),
      agent_(agent),
      timed_(process.timing),
      // A queue with a single producer takes no marker packets from us, so its dispatches are always
      // followed.
      tracked_(timed_ || queue->type == HSA_QUEUE_TYPE_SINGLE),
      stand_ins_(std::make_shared<std::atomic<std::uint64_t>>(0)) {
  if (tracked_) ring_ = std::make_unique<TimingRing>(process.sink, agent.handle, queue->size);
}

void InterceptQueue::on_packets(const void* packets, std::uint64_t count, std::uint64_t, void* data,
                                hsa_amd_queue_intercept_packet_writer writer) {
  auto* self = static_cast<InterceptQueue*>(data);
  if (process() != &self->process_) {  // a forked child, or after the end
    writer(packets, count);
    return;
  }
  self->busy_.store(true, std::memory_order_seq_cst);
  const std::uint64_t nth = self->batches_++;
  const bool sample = nth < kSampleBatches || nth % kSampleBatches == 0;
  const std::uint64_t began = sample ? live::monotonic_ns() : 0;
  self->first_ns_ = 0;
  const auto* batch = static_cast<const Packet*>(packets);
  CaptureController& controller = self->process_.captures;
  controller.poll();
  Capture* capture = controller.active();
  if (!self->tracked_ && capture == nullptr && !controller.armed()) {
    self->count_only(batch, count);
  } else {
    self->rewrite(batch, count, capture);
    packets = self->out_.data();
    count = self->out_.size();
  }
  if (sample) {
    const std::uint64_t took = live::monotonic_ns() - began - self->first_ns_;
    self->process_.live->header().own_ns.fetch_add(nth < kSampleBatches ? took : took * kSampleBatches,
                                                   std::memory_order_relaxed);
  }
  if (count != 0) writer(packets, count);
  self->busy_.store(false, std::memory_order_release);
}

Kernel* InterceptQueue::kernel_of(std::uint64_t object) {
  const std::uint64_t generation = process_.kernels.generation();
  if (generation != cache_generation_) {
    std::fill(std::begin(cache_), std::end(cache_), Cached{});
    cache_generation_ = generation;
  }
  Cached& entry = cache_[(object >> 6 ^ object >> 12) % kCache];
  if (entry.object == object) return entry.kernel;
  entry = {object, process_.kernels.find(object)};
  return entry.kernel;
}

std::uint32_t InterceptQueue::row_of(Kernel* kernel) {
  if (kernel == nullptr) return 0;
  const std::uint32_t row = kernel->row.load(std::memory_order_acquire);
  if (row != 0) return row - 1;
  const std::uint64_t began = live::monotonic_ns();
  const std::uint32_t made = process_.first_dispatch(*kernel);
  const std::uint64_t took = live::monotonic_ns() - began;
  first_ns_ += took;
  process_.live->header().own_ns.fetch_add(took, std::memory_order_relaxed);
  return made;
}

void InterceptQueue::count_only(const Packet* packets, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (packets[i].type() != HSA_PACKET_TYPE_KERNEL_DISPATCH) continue;
    Kernel* kernel = kernel_of(packets[i].dispatch.kernel_object);
    process_.count(packets[i], kernel, row_of(kernel));
    last_.store(kernel, std::memory_order_relaxed);
  }
}

void InterceptQueue::hold(Capture& capture) {
  // A marker that has not completed is in a packet of an earlier capture that was given up.
  if (marker_.handle == 0 || api().core.hsa_signal_load_scacquire_fn(marker_) > 0) {
    if (api().core.hsa_signal_create_fn(1, 0, nullptr, &marker_) != HSA_STATUS_SUCCESS) return;
  } else {
    api().core.hsa_signal_store_relaxed_fn(marker_, 1);
  }
  out_.push_back(barrier_packet({}, marker_));
  out_.push_back(barrier_packet(capture.after(), {}));
  held_by_.store(capture.id(), std::memory_order_seq_cst);
}

void InterceptQueue::rewrite(const Packet* packets, std::uint64_t count, Capture* capture) {
  out_.clear();
  if (capture != nullptr && capture->holds(*this) &&
      held_by_.load(std::memory_order_relaxed) != capture->id()) {
    hold(*capture);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const Packet& packet = packets[i];
    if (packet.type() == HSA_PACKET_TYPE_BARRIER_AND && packet.barrier.reserved2 == kInjected) continue;
    if (packet.type() != HSA_PACKET_TYPE_KERNEL_DISPATCH) {
      out_.push_back(packet);
      continue;
    }
    add_dispatch(packet);
  }
}

void InterceptQueue::add_dispatch(const Packet& packet) {
  Kernel* kernel = kernel_of(packet.dispatch.kernel_object);
  const std::uint32_t row = row_of(kernel);
  const std::uint64_t nth = process_.count(packet, kernel, row);
  if (process_.captures.armed() && kernel != nullptr) {
    if (Capture* target = process_.captures.claim(*this, packet, *kernel, row, nth)) {
      target->write_packets(packet, out_);
      return;
    }
  }
  out_.push_back(packet);
  if (process_.captures.active() == nullptr) last_.store(kernel, std::memory_order_relaxed);
  if (!tracked_) return;
  hsa_signal_t& completion = out_.back().dispatch.completion_signal;
  if (completion.handle != 0) {
    completion = process_.proxies.stand_in(completion, agent_.handle, row, nth, stand_ins_);
    return;
  }
  completion = ring_->begin(kernel, row, nth);
  if (completion.handle == 0) process_.sink.lost(1);
}

void InterceptQueue::collect() {
  if (ring_ != nullptr) ring_->collect();
}

void InterceptQueue::finish(std::uint64_t limit_ns) {
  const std::uint64_t deadline = live::monotonic_ns() + limit_ns;
  if (ring_ != nullptr) ring_->finish(limit_ns);
  while (stand_ins_->load() != 0 && live::monotonic_ns() < deadline) {
    const timespec pause{0, 200'000};
    ::nanosleep(&pause, nullptr);
  }
}

std::uint64_t InterceptQueue::in_flight() const {
  return (ring_ != nullptr ? ring_->in_flight() : 0) + stand_ins_->load(std::memory_order_seq_cst);
}

const Kernel* InterceptQueue::running() {
  const Kernel* oldest = ring_ != nullptr ? ring_->oldest() : nullptr;
  return oldest != nullptr ? oldest : last_.load();
}

bool InterceptQueue::drained(std::uint64_t capture_id, bool& injected) {
  // A batch that was being handled when the hold was set may not have seen it.
  if (busy_.load(std::memory_order_seq_cst)) return false;
  if (held_by_.load(std::memory_order_seq_cst) == capture_id) {
    return api().core.hsa_signal_load_scacquire_fn(marker_) <= 0;
  }
  if (tracked_) {
    collect();
    return in_flight() == 0;
  }
  if (!injected) {
    injected = true;
    inject_marker();
  }
  return false;
}

// As one more producer: the packet makes the handler run, which puts the marker and the hold in its place.
void InterceptQueue::inject_marker() {
  const auto& core = api().core;
  if (core.hsa_queue_load_write_index_scacquire_fn(queue_) -
          core.hsa_queue_load_read_index_scacquire_fn(queue_) >=
      queue_->size) {
    return;  // full: the program's own packets will make the handler run
  }
  const std::uint64_t index = core.hsa_queue_add_write_index_scacq_screl_fn(queue_, 1);
  while (index - core.hsa_queue_load_read_index_scacquire_fn(queue_) >= queue_->size) {
    const timespec pause{0, 50'000};
    ::nanosleep(&pause, nullptr);
  }
  auto* slot = static_cast<Packet*>(queue_->base_address) + index % queue_->size;
  Packet packet = barrier_packet({}, {});
  packet.barrier.reserved2 = kInjected;
  std::memcpy(slot->bytes + sizeof slot->header, packet.bytes + sizeof packet.header,
              sizeof packet - sizeof packet.header);
  // The slot is the packet processor's once its header is valid.
  __atomic_store_n(&slot->header, packet.header, __ATOMIC_RELEASE);
  core.hsa_signal_store_screlease_fn(queue_->doorbell_signal, static_cast<hsa_signal_value_t>(index));
}

void Queues::add(std::shared_ptr<InterceptQueue> queue) {
  const std::lock_guard lock(mutex_);
  queues_.push_back(std::move(queue));
}

std::shared_ptr<InterceptQueue> Queues::take(const hsa_queue_t* queue) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(queues_.begin(), queues_.end(), [&](const auto& q) { return q->handle() == queue; });
  if (found == queues_.end()) return nullptr;
  std::shared_ptr<InterceptQueue> taken = std::move(*found);
  queues_.erase(found);
  return taken;
}

std::vector<std::shared_ptr<InterceptQueue>> Queues::all() const {
  const std::lock_guard lock(mutex_);
  return queues_;
}

}  // namespace kerncap::interpose
