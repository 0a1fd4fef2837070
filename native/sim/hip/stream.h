// Streams and events: the order of what a program submits, on top of hardware queues.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "sim/hip/error.h"
#include "sim/hip/queue.h"

namespace kerncap::sim::hip {

// A stream is a share of one hardware queue, which runs its packets in order. Copies and host functions run
// beside the queue: they wait for the stream's tail, and what follows waits for them. Not locked: callers
// hold their Gpu's mutex, except for wait().
class Stream {
 public:
  Stream(Gpu& gpu, unsigned flags, int priority) : gpu_(gpu), flags_(flags), priority_(priority) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  [[nodiscard]] Gpu& gpu() const { return gpu_; }
  [[nodiscard]] unsigned flags() const { return flags_; }
  [[nodiscard]] int priority() const { return priority_; }
  // Whether it synchronises with the null stream.
  [[nodiscard]] bool blocking() const { return (flags_ & hipStreamNonBlocking) == 0; }

  // The stream's hardware queue, made at first use; null if the runtime refuses one.
  HardwareQueue* queue();

  [[nodiscard]] bool idle() const;
  // Done once all that was submitted so far is done. Null: nothing to wait for. Sets *failed if out of
  // resources.
  SignalRef tail(bool* failed);
  void wait_for(const SignalRef& other);  // what is submitted next

  // Puts what the next packet must wait for into the queue, and returns the queue; null if there is none. The
  // kernel arguments of a dispatch are taken from it after this, and before dispatch().
  HardwareQueue* prepare();
  void dispatch(const Dispatch& what);
  // `bytes` between memory that the device can reach.
  hipError_t copy(void* dst, const void* src, std::size_t bytes);
  // Runs in the runtime's own thread, which must not call HIP.
  hipError_t host(std::function<void()> function);
  // Like tail(), but always a signal of the hardware queue, whose timestamps say when it was reached.
  hipError_t mark(SignalRef* marker);

 private:
  Gpu& gpu_;
  unsigned flags_;
  int priority_;
  HardwareQueue* queue_ = nullptr;
  std::vector<SignalRef> waits_for_;  // to be put before the next packet
  SignalRef tail_;                    // null: not known yet (see dirty_)
  bool dirty_ = false;                // packets were submitted since tail_ was known
};

struct Event {
  unsigned flags = 0;
  std::mutex mutex;
  SignalRef marker;  // null: never recorded, or recorded in a stream with nothing in it
  bool recorded = false;
  abi::hsa_agent_t agent{};
};

// Turns a handle of the API, the null stream included, into a stream of the thread's device; null if there is
// none.
Stream* find_stream(hipStream_t handle);

// Makes `stream` wait for what HIP's null-stream rules say it must: the null stream for every blocking
// stream, and every blocking stream for the null stream. The Gpu's mutex is held.
hipError_t join_null_stream(Stream& stream);

// Waits until all that was submitted to the stream, or the device, is done. The Gpu's mutex is not held.
hipError_t synchronize(Stream& stream);
hipError_t synchronize(Gpu& gpu);

}  // namespace kerncap::sim::hip
