#include "interpose/cuda/controller.h"

#include <memory>
#include <vector>

#include "interpose/cuda/capture.h"
#include "interpose/cuda/process.h"

namespace kerncap::interpose::cuda {

Controller::Controller(Process& process) : CaptureRequests(process.control->block()), process_(process) {}

void Controller::watch(bool launches) {
  process_.sampling.hold(Sampling::kForCapture, launches);
  watch_launches(kForRequest, launches);
}

Match Controller::judge(Kernel& kernel) {
  if (kernel.judged.load(std::memory_order_acquire) == request_.sequence) return kernel.match.load();
  const Match match = pattern_->match(kernel.symbol, kernel.demangled, kernel.id);
  set_judged(kernel, match, request_.sequence);
  return match;
}

void Controller::resolve() {
  if (!outdated(process_.kernels.generation())) return;
  std::vector<Candidate> exact, part;
  for (Candidate& candidate : process_.kernels.candidates()) {
    const Match match = pattern_->match(candidate.symbol, candidate.demangled, candidate.id);
    if (match == Match::none) continue;
    (match == Match::exact ? exact : part).push_back(std::move(candidate));
  }
  set_candidates(std::move(exact), std::move(part));
}

Capture* Controller::claim(const Launch& launch, Kernel& kernel, std::uint64_t nth) {
  if (not_meant(kernel)) return nullptr;
  const std::lock_guard lock(mutex_);
  if (!armed_.load() || active_.load() != nullptr) return nullptr;
  if (judge(kernel) == Match::none) return nullptr;
  resolve();
  if (!asked_for(kernel, {launch.work_items(0), launch.work_items(1), launch.work_items(2)}, nth) || !own()) {
    return nullptr;
  }
  auto capture = std::make_unique<Capture>(process_, request_, launch, kernel, nth);
  Capture* started = capture.release();  // until its after(), which ends in capture_ended()
  active_.store(started, std::memory_order_seq_cst);
  disarm();
  return started;
}

void Controller::capture_ended() {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Capture>(static_cast<Capture*>(active_.exchange(nullptr, std::memory_order_seq_cst)))
      .reset();
  if (!armed_.load()) watch(false);
  ended_.notify_all();
}

}  // namespace kerncap::interpose::cuda
