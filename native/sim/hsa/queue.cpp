#include "sim/hsa/queue.h"

#include <sys/mman.h>

#include <new>

#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

// Where flat addresses turn into LDS and scratch on gfx9 and gfx11: the high halves of the apertures, as the
// kernel driver sets them up.
constexpr std::uint32_t kSharedApertureHigh = 0x00010000;
constexpr std::uint32_t kPrivateApertureHigh = 0x00020000;

void* map_pages(std::uint64_t bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  return mapped;
}

}  // namespace

Queue::Queue(Runtime* runtime, Agent* agent, std::uint32_t packets, std::uint32_t type, Signal* doorbell)
    : runtime_(runtime), agent_(agent) {
  struct_bytes_ = page_up(sizeof(abi::amd_queue_v2_t));
  ring_bytes_ = page_up(packets * kPacketBytes);
  amd_ = new (map_pages(struct_bytes_)) abi::amd_queue_v2_t{};
  auto* ring = static_cast<Packet*>(map_pages(ring_bytes_));
  for (std::uint32_t i = 0; i < packets; ++i) ring[i].header = abi::HSA_PACKET_TYPE_INVALID;
  if (doorbell == nullptr) {
    doorbell = own_doorbell_ = runtime->signals.create(0, abi::AMD_SIGNAL_KIND_DOORBELL);
    if (doorbell == nullptr) throw std::bad_alloc();
    doorbell->doorbell_of = this;
    doorbell->amd.queue_ptr = amd_;
  }
  abi::hsa_queue_t& q = amd_->hsa_queue;
  q.type = type;
  q.features = abi::HSA_QUEUE_FEATURE_KERNEL_DISPATCH;
  q.base_address = ring;
  q.doorbell_signal = doorbell->handle();
  q.size = packets;
  q.id = runtime->queues.next_id();
  amd_->group_segment_aperture_base_hi = kSharedApertureHigh;
  amd_->private_segment_aperture_base_hi = kPrivateApertureHigh;
  amd_->read_dispatch_id_field_base_byte_offset = offsetof(abi::amd_queue_v2_t, read_dispatch_id);
  amd_->queue_properties = abi::AMD_QUEUE_PROPERTIES_IS_PTR64;
  if (agent != nullptr) {
    amd_->max_cu_id = agent->model->compute_units - 1;
    amd_->max_wave_id = agent->model->waves_per_cu - 1;
    agent->memory.add({reinterpret_cast<std::uint64_t>(amd_), struct_bytes_, true, "queue"});
    agent->memory.add({reinterpret_cast<std::uint64_t>(ring), ring_bytes_, true, "queue"});
  }
}

Queue::~Queue() {
  void* ring = amd_->hsa_queue.base_address;
  if (own_doorbell_ != nullptr) {
    own_doorbell_->doorbell_of = nullptr;
    runtime_->signals.release(own_doorbell_);
  }
  if (agent_ != nullptr) {
    agent_->memory.remove(reinterpret_cast<std::uint64_t>(amd_));
    agent_->memory.remove(reinterpret_cast<std::uint64_t>(ring));
  }
  munmap(ring, ring_bytes_);
  munmap(amd_, struct_bytes_);
}

}  // namespace kerncap::sim::rt
