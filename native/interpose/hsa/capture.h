// The capture of one dispatch, without waiting in the packet handler. In place of the target's packet go
//   a barrier that completes A      everything before it in the queue is done
//   a barrier that waits for B
//   the target, which completes C
//   a barrier that waits for D
// and every other queue of the device gets a marker and a barrier that waits for D before its next packets.
// The capture's thread waits for A and the markers, saves memory, releases B, waits for C, saves what
// changed, completes the target's own signal and releases D. Each wait has the request's limit; when it is
// over, B and D are released and the capture is given up.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "abi/hsa.h"
#include "interpose/hsa/capture_controller.h"
#include "interpose/hsa/queue.h"
#include "snapshot/capture_writer.h"

namespace kerncap::interpose {

class Capture : public RunningCapture {
 public:
  // Null when the runtime gives no signals.
  static std::unique_ptr<Capture> start(Process& process, const CaptureRequest& request,
                                        InterceptQueue& queue, const Packet& packet, Kernel& kernel,
                                        std::uint32_t row, std::uint64_t nth);

  // What goes to the queue in place of the target.
  void write_packets(const Packet& packet, std::vector<Packet>& out) const;
  // Whether new packets of that queue must wait for after().
  [[nodiscard]] bool holds(const InterceptQueue& queue) const;
  [[nodiscard]] abi::hsa_signal_t after() const { return after_; }
  [[nodiscard]] std::uint64_t id() const { return request_.sequence; }

  // Starts the capture's thread, which ends in CaptureController::capture_ended and deletes this.
  void run_detached();

 private:
  Capture(Process& process, CaptureRequest request, InterceptQueue& queue, const Packet& packet,
          Kernel& kernel, std::uint32_t row, std::uint64_t nth);
  void run();
  void take();
  void drain();
  void wait_for(abi::hsa_signal_t signal, std::uint64_t deadline, const std::string& what);
  void set_state(live::CaptureState state);
  void check_cancelled() const;
  void release();

  Process& process_;
  live::Control& control_;
  const CaptureRequest request_;
  InterceptQueue& queue_;
  const AgentInfo& agent_;
  const Packet packet_;
  Kernel& kernel_;
  const std::uint32_t row_;
  const std::uint64_t nth_;
  const std::uint64_t nth_overall_;
  std::vector<unsigned char> kernargs_;  // copied when A has completed
  abi::hsa_signal_t before_{};           // A
  abi::hsa_signal_t go_{};               // B
  abi::hsa_signal_t complete_{};         // C
  abi::hsa_signal_t after_{};            // D
};

}  // namespace kerncap::interpose
