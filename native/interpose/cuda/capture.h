// The capture of one launch, by the thread that launches: before() runs as the driver enters the call,
// after() when it leaves it; between them, for a kernel of a graph, graph_launch.cpp launches it. The device
// is at rest at both times: what was submitted before has completed, and calls of other threads that launch,
// free or copy wait. Every wait has the request's limit; when it is over the capture is given up and the
// program runs on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "interpose/common/memory_image.h"
#include "interpose/cuda/controller.h"
#include "interpose/cuda/launch.h"
#include "interpose/cuda/memory.h"
#include "snapshot/capture_writer.h"

namespace kerncap::interpose::cuda {

class Capture : public RunningCapture {
 public:
  Capture(Process& process, CaptureRequest request, Launch launch, Kernel& kernel, std::uint64_t nth);

  void before();
  // `result`: what the launch returned. Ends the capture, and with it the life of this.
  void after(abi::CUresult result);

  // after() in two steps, for what has to be done between them, while other threads' calls still wait.
  void changed(abi::CUresult result);
  void end();
  // Whether end() will end the program.
  [[nodiscard]] bool ends_program() const;
  // Ends the capture before the launch: it cannot be made.
  void refuse(const std::string& why, live::CaptureState outcome = live::CaptureState::failed);
  // Waits until nothing runs in the context. Throws Refused, Cancelled.
  void settle(const std::string& what);

 private:
  void save_before();
  void save_after(abi::CUresult result);
  std::vector<ImageRegion> regions();
  void check();
  void set_state(live::CaptureState state);

  Process& process_;
  live::Control& control_;
  const CaptureRequest request_;
  const Launch launch_;
  Kernel& kernel_;
  const std::uint64_t nth_;
  const std::uint64_t nth_overall_;
  bool over_ = false;  // failed before the launch
  live::CaptureState outcome_;
  std::string message_;

  std::vector<unsigned char> parameters_;
  std::unique_ptr<snapshot::CaptureWriter> writer_;
  std::unique_ptr<CudaImageMemory> memory_;
  std::unique_ptr<MemoryImage> image_;
  std::vector<const Code*> codes_;  // those whose variables are regions
  struct Variable {
    std::uint32_t code;  // Code::id
    std::string name;
    std::uint64_t address, bytes;
    bool constant;
  };
  std::vector<Variable> variables_;

  friend class CaptureRecords;
};

}  // namespace kerncap::interpose::cuda
