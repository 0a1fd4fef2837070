// From the control block's request to one dispatch that is captured.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "interpose/common/capture_requests.h"
#include "interpose/hsa/kernel_registry.h"

namespace kerncap::interpose {

struct Process;
class Capture;
class InterceptQueue;
union Packet;

class CaptureController : public CaptureRequests {
 public:
  explicit CaptureController(Process& process);

  // The capture that is under way; null when there is none.
  [[nodiscard]] Capture* active() const;

  // Whether this dispatch, the `nth` of its kernel, is the one that is wanted. If so the capture is this
  // process's from now on, and its packets are to be written in place of `packet`.
  Capture* claim(InterceptQueue& queue, const Packet& packet, Kernel& kernel, std::uint32_t row,
                 std::uint64_t nth);

  // Keeps a call that frees memory for the end of the capture that is under way. False: there is none. It
  // must not wait for that end: the captured kernel itself may be waiting for the free, which it asked of the
  // host.
  bool put_off(std::function<void()> call);

  // The capture thread's last act.
  void capture_ended();

 private:
  Match judge(Kernel& kernel);
  void resolve();

  Process& process_;
  std::vector<std::function<void()>> put_off_;
};

}  // namespace kerncap::interpose
