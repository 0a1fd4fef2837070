#include "interpose/hsa/capture_controller.h"

#include <memory>

#include "interpose/hsa/capture.h"
#include "interpose/hsa/process.h"

namespace kerncap::interpose {

using live::CaptureState;

CaptureController::CaptureController(Process& process)
    : CaptureRequests(process.control->block()), process_(process) {}

Capture* CaptureController::active() const {
  return static_cast<Capture*>(active_.load(std::memory_order_acquire));
}

Match CaptureController::judge(Kernel& kernel) {
  if (kernel.judged.load(std::memory_order_acquire) == request_.sequence) return kernel.match.load();
  Match match = pattern_->match(kernel.symbol, demangle(kernel.symbol), kernel.id);
  // The runtime's own copy kernels are only meant when they are named in full.
  if (match == Match::part && kernel.kind == live::KernelKind::runtime) match = Match::none;
  set_judged(kernel, match, request_.sequence);
  return match;
}

void CaptureController::resolve() {
  if (!outdated(process_.kernels.generation())) return;
  std::vector<Candidate> exact, part;
  for (Kernel* kernel : process_.kernels.loaded_kernels()) {
    const Match match = judge(*kernel);
    if (match == Match::none) continue;
    (match == Match::exact ? exact : part).push_back({kernel->id, kernel->symbol, demangle(kernel->symbol)});
  }
  set_candidates(std::move(exact), std::move(part));
}

Capture* CaptureController::claim(InterceptQueue& queue, const Packet& packet, Kernel& kernel,
                                  std::uint32_t row, std::uint64_t nth) {
  if (not_meant(kernel)) return nullptr;
  const std::lock_guard lock(mutex_);
  if (!armed_.load() || active_.load() != nullptr) return nullptr;
  if (judge(kernel) == Match::none) return nullptr;
  resolve();
  const auto& d = packet.dispatch;
  if (!asked_for(kernel, {d.grid_size_x, d.grid_size_y, d.grid_size_z}, nth) || !own()) return nullptr;
  std::unique_ptr<Capture> capture = Capture::start(process_, request_, queue, packet, kernel, row, nth);
  if (capture == nullptr) {
    report(CaptureState::failed, "no signals can be had from the runtime for the capture");
    disarm();
    return nullptr;
  }
  disarm();
  // From here on the capture's own thread has it; see capture_ended().
  Capture* started = capture.release();
  active_.store(started, std::memory_order_seq_cst);
  started->run_detached();
  return started;
}

bool CaptureController::put_off(std::function<void()> call) {
  if (!is_active()) return false;
  const std::lock_guard lock(mutex_);
  if (active_.load() == nullptr) return false;
  put_off_.push_back(std::move(call));
  return true;
}

void CaptureController::capture_ended() {
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    active_.store(nullptr, std::memory_order_seq_cst);
    calls.swap(put_off_);
    ended_.notify_all();
  }
  for (const auto& call : calls) call();
}

}  // namespace kerncap::interpose
