// A queue whose packets go through a tool's handlers before they reach a hardware queue.
//
// Handlers run in the thread that rings the doorbell, under the queue's lock. A ring from inside a handler,
// of any intercept queue, is left to the async-event thread. The handler registered last is called first;
// what it writes goes to the one registered before it, and the first one's output to the hardware.
#pragma once

#include <deque>
#include <mutex>
#include <vector>

#include "abi/hsa.h"
#include "sim/hsa/hardware_queue.h"
#include "sim/hsa/queue.h"

namespace kerncap::sim::rt {

class InterceptQueue final : public Queue {
 public:
  // `hardware` is started and in nobody else's hands.
  InterceptQueue(Runtime* runtime, std::shared_ptr<HardwareQueue> hardware, std::uint32_t packets);
  ~InterceptQueue() override;

  // Connects the hardware queue's callbacks; once the queue is owned by a shared_ptr.
  void connect();

  void add_handler(abi::hsa_amd_queue_intercept_handler handler, void* data);
  void ring(std::uint64_t value) override;
  void inactivate() override { hardware_->inactivate(); }
  HardwareQueue* hardware() override { return hardware_.get(); }

 private:
  struct Handler {
    abi::hsa_amd_queue_intercept_handler function;
    void* data;
  };

  static void write_from_handler(const void* packets, std::uint64_t count);

  void process();
  void process_later();
  void hand_over(const Packet* packets, std::uint64_t count);
  void call_handler(std::size_t index, const Packet* packets, std::uint64_t count);
  void submit(const Packet* packets, std::uint64_t count);
  bool submit_one(const Packet& packet);
  bool flush_overflow();

  std::shared_ptr<HardwareQueue> hardware_;
  std::mutex mutex_;
  std::vector<Handler> handlers_;
  std::deque<Packet> overflow_;  // rewritten packets for which the hardware queue had no room
  std::atomic<bool> wants_room_{false};
  std::uint64_t batch_start_ = 0;  // index of the first packet of the batch that handlers see
};

}  // namespace kerncap::sim::rt
