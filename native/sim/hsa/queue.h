// Queues: what an hsa_queue_t* stands for. A hardware queue runs its packets in a thread of its own; an
// intercept queue hands them to a tool first; a soft queue belongs to the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "abi/hsa.h"
#include "sim/hsa/signal.h"

namespace kerncap::sim::rt {

class Runtime;
class HardwareQueue;
struct Agent;

inline constexpr std::uint64_t kPacketBytes = 64;

// Any AQL packet, as 64 bytes with the header that all kinds share.
struct alignas(64) Packet {
  std::uint16_t header;
  unsigned char rest[62];

  [[nodiscard]] std::uint16_t load_header() const { return __atomic_load_n(&header, __ATOMIC_ACQUIRE); }
  [[nodiscard]] unsigned type() const { return load_header() & 0xff; }
};
static_assert(sizeof(Packet) == kPacketBytes);

using QueueErrorCallback = void (*)(abi::hsa_status_t, abi::hsa_queue_t*, void*);

class Queue : public std::enable_shared_from_this<Queue> {
 public:
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  virtual ~Queue();

  // The doorbell was set to `value`: packets up to that index are ready.
  virtual void ring(std::uint64_t value) = 0;
  virtual void inactivate() = 0;
  // The queue whose thread runs the packets; null for a soft queue.
  virtual HardwareQueue* hardware() = 0;

  [[nodiscard]] abi::hsa_queue_t* handle() const { return &amd_->hsa_queue; }
  [[nodiscard]] abi::amd_queue_v2_t* amd() const { return amd_; }
  [[nodiscard]] Agent* agent() const { return agent_; }
  [[nodiscard]] std::uint32_t size() const { return amd_->hsa_queue.size; }
  [[nodiscard]] Packet* slot(std::uint64_t index) const {
    return static_cast<Packet*>(amd_->hsa_queue.base_address) + (index & (size() - 1));
  }
  [[nodiscard]] std::uint64_t read_index() const {
    return __atomic_load_n(&amd_->read_dispatch_id, __ATOMIC_ACQUIRE);
  }
  [[nodiscard]] std::uint64_t write_index() const {
    return __atomic_load_n(&amd_->write_dispatch_id, __ATOMIC_ACQUIRE);
  }

 protected:
  // Maps the queue's memory. `packets` is a power of two; a null `doorbell` gets the queue one of its own.
  // Throws std::bad_alloc.
  Queue(Runtime* runtime, Agent* agent, std::uint32_t packets, std::uint32_t type, Signal* doorbell);

  Runtime* runtime_;
  Agent* agent_;  // null for a soft queue
  abi::amd_queue_v2_t* amd_ = nullptr;

 private:
  std::uint64_t struct_bytes_ = 0;
  std::uint64_t ring_bytes_ = 0;
  Signal* own_doorbell_ = nullptr;
};

// hsa_soft_queue_create: memory and indices; the program reads the packets itself.
class SoftQueue final : public Queue {
 public:
  SoftQueue(Runtime* runtime, std::uint32_t packets, std::uint32_t type, Signal* doorbell)
      : Queue(runtime, nullptr, packets, type, doorbell) {}
  void ring(std::uint64_t) override {}
  void inactivate() override {}
  HardwareQueue* hardware() override { return nullptr; }
};

}  // namespace kerncap::sim::rt
