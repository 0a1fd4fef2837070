// One of the program's queues, as an intercept queue: every packet passes through on_packets.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "abi/hsa.h"
#include "interpose/hsa/agents.h"
#include "interpose/hsa/kernel_registry.h"
#include "interpose/hsa/timing.h"

namespace kerncap::interpose {

struct Process;
class Capture;

// One AQL slot, seen as whichever packet it holds.
union Packet {
  std::uint16_t header;
  abi::hsa_kernel_dispatch_packet_t dispatch;
  abi::hsa_barrier_and_packet_t barrier;
  unsigned char bytes[64];

  [[nodiscard]] unsigned type() const { return header & 0xff; }
};
static_assert(sizeof(Packet) == 64);

// A BARRIER_AND with its barrier bit set, that waits for `dependency` (if any) and completes `completion` (if
// any).
Packet barrier_packet(abi::hsa_signal_t dependency, abi::hsa_signal_t completion);

class InterceptQueue {
 public:
  InterceptQueue(Process& process, abi::hsa_queue_t* queue, const AgentInfo& agent);

  // The intercept handler; `data` is the InterceptQueue.
  static void on_packets(const void* packets, std::uint64_t count, std::uint64_t index, void* data,
                         abi::hsa_amd_queue_intercept_packet_writer writer);

  [[nodiscard]] abi::hsa_queue_t* handle() const { return queue_; }
  [[nodiscard]] const AgentInfo& agent() const { return agent_; }
  [[nodiscard]] bool cooperative() const { return queue_->type == abi::HSA_QUEUE_TYPE_COOPERATIVE; }

  void collect();
  // Before the queue is destroyed or the process ends.
  void finish(std::uint64_t limit_ns);
  [[nodiscard]] std::uint64_t in_flight() const;
  [[nodiscard]] const std::shared_ptr<std::atomic<std::uint64_t>>& stand_ins() const { return stand_ins_; }

  // For a capture on another queue of the device, which has set its hold before. Whether nothing that was
  // submitted before the hold still runs; `injected` is the caller's, false at first.
  bool drained(std::uint64_t capture_id, bool& injected);
  // What keeps the queue from being drained: the oldest kernel that has not completed, or else the last one
  // before the hold. Null where neither is known.
  const Kernel* running();

 private:
  void count_only(const Packet* packets, std::uint64_t count);
  void rewrite(const Packet* packets, std::uint64_t count, Capture* capture);
  void hold(Capture& capture);
  void add_dispatch(const Packet& packet);
  Kernel* kernel_of(std::uint64_t kernel_object);
  std::uint32_t row_of(Kernel* kernel);
  void inject_marker();

  Process& process_;
  abi::hsa_queue_t* queue_;
  const AgentInfo& agent_;
  const bool timed_;    // durations are recorded
  const bool tracked_;  // every dispatch has a signal of ours, so that in_flight() is known
  std::unique_ptr<TimingRing> ring_;
  std::shared_ptr<std::atomic<std::uint64_t>> stand_ins_;
  std::atomic<bool> busy_{false};  // in on_packets
  std::vector<Packet> out_;
  std::uint64_t batches_ = 0;
  std::uint64_t first_ns_ = 0;  // that first dispatches of kernels took in this batch
  // The last captures hold on this queue: its id, and the signal that says that what was before it is done.
  std::atomic<std::uint64_t> held_by_{0};
  abi::hsa_signal_t marker_{};
  std::atomic<const Kernel*> last_{nullptr};  // dispatched; not updated while a capture is under way
  // Answers of the registry, by a hash of the kernel object.
  struct Cached {
    std::uint64_t object = 0;
    Kernel* kernel = nullptr;
  };
  static constexpr std::size_t kCache = 64;
  Cached cache_[kCache];
  std::uint64_t cache_generation_ = 0;
};

// The queues that exist.
class Queues {
 public:
  void add(std::shared_ptr<InterceptQueue> queue);
  std::shared_ptr<InterceptQueue> take(const abi::hsa_queue_t* queue);  // and remove
  std::vector<std::shared_ptr<InterceptQueue>> all() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<InterceptQueue>> queues_;
};

}  // namespace kerncap::interpose
