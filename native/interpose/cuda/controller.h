// From the control block's request to one launch that is captured.
#pragma once

#include <cstdint>

#include "interpose/common/capture_requests.h"
#include "interpose/cuda/kernels.h"
#include "interpose/cuda/launch.h"

namespace kerncap::interpose::cuda {

struct Process;
class Capture;

class Controller : public CaptureRequests {
 public:
  explicit Controller(Process& process);

  // Whether this launch, the `nth` of its kernel, is the one that is wanted: then this thread takes the
  // capture, before and after the launch. Null otherwise.
  Capture* claim(const Launch& launch, Kernel& kernel, std::uint64_t nth);
  void capture_ended();

 private:
  void watch(bool launches) override;
  Match judge(Kernel& kernel);
  void resolve();

  Process& process_;
};

}  // namespace kerncap::interpose::cuda
