#include "sim/hsa/intercept_queue.h"

#include <cstring>

#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

using namespace kerncap::abi;  // NOLINT

// Which handler of which queue this thread is in, for the writer function, which gets no context.
struct Cursor {
  InterceptQueue* queue = nullptr;
  std::size_t handler = 0;
};
thread_local Cursor t_cursor;

bool is_marker(const Packet& packet) {
  return packet.type() == HSA_PACKET_TYPE_VENDOR_SPECIFIC &&
         packet.rest[0] == AMD_AQL_FORMAT_INTERCEPT_MARKER;
}

}  // namespace

InterceptQueue::InterceptQueue(Runtime* runtime, std::shared_ptr<HardwareQueue> hardware,
                               std::uint32_t packets)
    : Queue(runtime, hardware->agent(), packets, hardware->handle()->type, nullptr),
      hardware_(std::move(hardware)) {
  hardware_->report_as(handle());
}

InterceptQueue::~InterceptQueue() { hardware_->inactivate(); }

void InterceptQueue::connect() {
  hardware_->on_progress([self = std::weak_ptr(shared_from_this()), this] {
    if (!wants_room_.load()) return;
    if (auto alive = self.lock()) process_later();
  });
}

void InterceptQueue::add_handler(hsa_amd_queue_intercept_handler handler, void* data) {
  std::lock_guard lock(mutex_);
  handlers_.push_back({handler, data});
}

void InterceptQueue::ring(std::uint64_t) {
  if (t_cursor.queue != nullptr)
    process_later();
  else
    process();
}

void InterceptQueue::process_later() {
  runtime_->events.run_soon([self = std::weak_ptr(shared_from_this())] {
    if (auto queue = self.lock()) static_cast<InterceptQueue*>(queue.get())->process();
  });
}

// Hands over packets that the program has completed, batch by batch. Slots are free once their packets have
// been rewritten and found room; until then the program sees a full queue.
void InterceptQueue::process() {
  std::lock_guard lock(mutex_);
  const std::uint64_t longest = runtime_->config().intercept_batches ? size() : 1;
  while (flush_overflow()) {
    const std::uint64_t first = read_index();
    const std::uint64_t limit =
        std::min<std::uint64_t>(std::min(longest, size() - (first & (size() - 1))),  // contiguous in memory
                                write_index() - first);
    std::uint64_t count = 0;
    while (count < limit && slot(first + count)->type() != HSA_PACKET_TYPE_INVALID) ++count;
    if (count == 0) return;
    batch_start_ = first;
    hand_over(slot(first), count);
    for (std::uint64_t i = 0; i < count; ++i)
      __atomic_store_n(&slot(first + i)->header, std::uint16_t{HSA_PACKET_TYPE_INVALID}, __ATOMIC_RELEASE);
    __atomic_store_n(&amd_->read_dispatch_id, first + count, __ATOMIC_RELEASE);
  }
}

void InterceptQueue::hand_over(const Packet* packets, std::uint64_t count) {
  if (handlers_.empty()) return submit(packets, count);
  t_cursor.queue = this;
  call_handler(handlers_.size() - 1, packets, count);
  t_cursor.queue = nullptr;
}

void InterceptQueue::call_handler(std::size_t index, const Packet* packets, std::uint64_t count) {
  t_cursor.handler = index;
  handlers_[index].function(packets, count, batch_start_, handlers_[index].data, &write_from_handler);
}

void InterceptQueue::write_from_handler(const void* packets, std::uint64_t count) {
  InterceptQueue* queue = t_cursor.queue;
  if (queue == nullptr) {
    complain("an intercept writer was called outside its callback; %llu packets are lost",
             static_cast<unsigned long long>(count));
    return;
  }
  const std::size_t handler = t_cursor.handler;
  if (handler == 0)
    queue->submit(static_cast<const Packet*>(packets), count);
  else
    queue->call_handler(handler - 1, static_cast<const Packet*>(packets), count);
  t_cursor.handler = handler;
}

void InterceptQueue::submit(const Packet* packets, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    // Packets may come from memory of any alignment.
    Packet packet;
    std::memcpy(&packet, reinterpret_cast<const char*>(packets) + i * kPacketBytes, kPacketBytes);
    if (!overflow_.empty() || !submit_one(packet)) overflow_.push_back(packet);
  }
  if (hardware_->write_index() != 0) hardware_->ring(hardware_->write_index() - 1);
}

bool InterceptQueue::submit_one(const Packet& packet) {
  const std::uint64_t index = hardware_->write_index();
  if (is_marker(packet)) {
    const auto& marker = reinterpret_cast<const amd_aql_intercept_marker_t&>(packet);
    if (marker.callback != nullptr) marker.callback(&marker, handle(), index);
    return true;
  }
  if (index - hardware_->read_index() >= hardware_->size()) return false;
  Packet* slot = hardware_->slot(index);
  std::memcpy(slot->rest, packet.rest, sizeof slot->rest);
  __atomic_store_n(&slot->header, packet.header, __ATOMIC_RELEASE);
  __atomic_store_n(&hardware_->amd()->write_dispatch_id, index + 1, __ATOMIC_RELEASE);
  return true;
}

// Whether nothing is left over. If something is, the hardware queue will call when it has room.
bool InterceptQueue::flush_overflow() {
  if (overflow_.empty()) return true;
  wants_room_.store(true);
  bool wrote = false;
  while (!overflow_.empty() && submit_one(overflow_.front())) {
    overflow_.pop_front();
    wrote = true;
  }
  if (wrote) hardware_->ring(hardware_->write_index() - 1);
  if (overflow_.empty()) wants_room_.store(false);
  return overflow_.empty();
}

}  // namespace kerncap::sim::rt
