// One HSA queue, its packets in order, and the kernel arguments they point to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/hip/runtime.h"
#include "sim/hip/signal.h"

namespace kerncap::sim::hip {

struct Dispatch {
  std::uint32_t block[3];
  std::uint32_t grid[3];  // work-items
  std::uint32_t private_bytes;
  std::uint32_t group_bytes;
  std::uint64_t kernel_object;
  void* kernarg;
};

// Not locked: callers hold their Gpu's mutex.
class HardwareQueue {
 public:
  // Null if the runtime refuses the queue or the memory for kernel arguments.
  static std::unique_ptr<HardwareQueue> create(const Runtime& rt, Gpu& gpu);
  ~HardwareQueue();
  HardwareQueue(const HardwareQueue&) = delete;
  HardwareQueue& operator=(const HardwareQueue&) = delete;

  // Memory for the arguments of the next dispatch, 256-byte aligned; null if `bytes` is more than there is.
  // It stays untouched until that dispatch has ended.
  void* kernarg(std::size_t bytes);
  void dispatch(const Dispatch& what);
  // A barrier packet that waits for all that came before and for `waits_for`, and completes `completes`.
  void barrier(std::span<const SignalRef> waits_for, const SignalRef& completes);

  [[nodiscard]] abi::hsa_queue_t* handle() const { return queue_; }
  // Lies at the start of the queue object (amd_queue_v2_t): the high half of the flat apertures.
  [[nodiscard]] std::uint32_t shared_aperture() const;
  [[nodiscard]] std::uint32_t private_aperture() const;

  unsigned streams = 0;  // how many use this queue

 private:
  // Kernel arguments lie in segments. A segment is reused once a barrier, submitted after its last user, is
  // done.
  struct Segment {
    std::byte* base = nullptr;
    std::size_t used = 0;
    SignalRef retired;
    std::vector<SignalRef> kept;  // signals that packets of this segment's time refer to
  };

  HardwareQueue() = default;
  void* next_packet();
  void submit(void* packet, std::uint16_t header, std::uint16_t setup);
  void put_barrier(std::span<const SignalRef> waits_for, const SignalRef& completes);
  void next_segment();
  void keep(const SignalRef& signal);

  abi::hsa_queue_t* queue_ = nullptr;
  std::uint64_t index_ = 0;  // of the packet that next_packet gave
  void* memory_ = nullptr;
  std::vector<Segment> segments_;
  std::size_t current_ = 0;
};

}  // namespace kerncap::sim::hip
