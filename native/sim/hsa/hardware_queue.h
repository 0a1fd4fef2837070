// A queue of a simulated GPU: a thread that takes packets off the ring in order, as a command processor does.
#pragma once

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "sim/hsa/kerncap_sim.h"
#include "sim/hsa/queue.h"

namespace kerncap::sim::rt {

class HardwareQueue final : public Queue {
 public:
  HardwareQueue(Runtime* runtime, Agent* agent, std::uint32_t packets, std::uint32_t type,
                QueueErrorCallback callback, void* data);
  ~HardwareQueue() override;

  void start();
  void ring(std::uint64_t value) override;
  // Ends the running dispatch and runs no more packets.
  void inactivate() override;
  HardwareQueue* hardware() override { return this; }

  // Errors are reported as being of this queue: the intercept queue that the program knows.
  void report_as(abi::hsa_queue_t* handle) { reported_as_.store(handle); }
  // Called in the queue's thread each time a slot of the ring became free.
  void on_progress(std::function<void()> function) { on_progress_ = std::move(function); }

  void set_profiling(bool enable);
  // False when nothing was dispatched yet.
  bool last_dispatch(kerncap_sim_dispatch* out) const;

 private:
  enum class Result { done, stopped, failed };

  void loop();
  void sleep(std::uint32_t kick, std::uint64_t timeout_ns);
  void wake();
  [[nodiscard]] bool rung_soon(std::uint64_t index) const;
  Result process(const Packet& packet, std::uint64_t index);
  Result dispatch(const Packet& packet, std::uint64_t index);
  Result wait_barrier(const Packet& packet, bool any);
  Result wait_value(const Packet& packet);
  Result wait_until(const std::vector<SignalCondition>& conditions, bool any);
  void complete(abi::hsa_signal_t signal, std::uint64_t start_ticks, std::uint64_t end_ticks);
  void fail(abi::hsa_status_t status);

  const QueueErrorCallback callback_;
  void* const callback_data_;
  std::atomic<abi::hsa_queue_t*> reported_as_;
  std::function<void()> on_progress_;
  std::atomic<std::uint64_t> doorbell_end_{0};  // packets below this index may run
  std::atomic<std::uint32_t> kick_{0};          // futex word of the thread
  std::atomic<bool> asleep_{false};             // the thread waits, or is about to
  std::atomic<bool> stop_{false};
  std::uint64_t last_end_ticks_ = 0;
  mutable std::mutex dispatch_mutex_;
  kerncap_sim_dispatch last_dispatch_{};
  bool dispatched_ = false;
  std::thread thread_;
};

}  // namespace kerncap::sim::rt
