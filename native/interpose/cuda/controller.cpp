#include "interpose/cuda/controller.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "interpose/cuda/capture.h"
#include "interpose/cuda/process.h"

namespace kerncap::interpose::cuda {

using live::CaptureState;

namespace {

std::uint32_t code(CaptureState state) { return static_cast<std::uint32_t>(state); }

std::string field_text(const char* field, std::size_t bytes) { return {field, ::strnlen(field, bytes)}; }

}  // namespace

Controller::Controller(Process& process) : process_(process), control_(process.control->block()) {}

void Controller::poll() {
  const std::uint64_t sequence = control_.request_sequence.load(std::memory_order_acquire);
  if (sequence != seen_.load(std::memory_order_relaxed)) take_request(sequence);
}

void Controller::take_request(std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  if (sequence == seen_.load()) return;
  Capture* active = active_.load();
  if (control_.request == live::RequestKind::cancel) {
    seen_.store(sequence);
    if (active != nullptr) {
      active->cancel();
      return;
    }
    disarm();
    std::uint32_t waiting = control_.state.load();
    if ((waiting == code(CaptureState::armed) || waiting == code(CaptureState::idle)) &&
        control_.state.compare_exchange_strong(waiting, code(CaptureState::cancelled))) {
      control_.accepted_sequence.store(sequence, std::memory_order_release);
    }
    return;
  }
  if (active != nullptr) return;  // looked at again once it has ended
  seen_.store(sequence);
  disarm();
  if (control_.request != live::RequestKind::capture) return;
  if (control_.only_pid != 0 && control_.only_pid != static_cast<std::uint32_t>(::getpid())) return;
  if (control_.owner_pid.load(std::memory_order_acquire) != 0) return;
  request_ = {};
  request_.sequence = sequence;
  request_.memory = control_.memory;
  request_.nth = control_.nth;
  request_.timeout_ms = std::max<std::uint64_t>(control_.timeout_ms, 1);
  request_.exit_after = control_.exit_after != 0;
  std::copy_n(control_.grid, 3, request_.grid);
  request_.output = field_text(control_.output, sizeof control_.output);
  pattern_.emplace(field_text(control_.pattern, sizeof control_.pattern), control_.pattern_exact != 0);
  resolved_generation_ = 0;
  candidates_.clear();
  std::uint32_t idle = code(CaptureState::idle);
  control_.state.compare_exchange_strong(idle, code(CaptureState::armed));
  armed_.store(true, std::memory_order_release);
  watch_launches(kForRequest, true);
}

void Controller::disarm() {
  armed_.store(false, std::memory_order_release);
  pattern_.reset();
  watch_launches(kForRequest, active_.load() != nullptr);
}

void Controller::report(CaptureState state, const std::string& message) {
  live::set_text(control_.message, sizeof control_.message, message);
  control_.accepted_sequence.store(request_.sequence, std::memory_order_release);
  control_.state.store(code(state), std::memory_order_release);
}

Match Controller::judge(Kernel& kernel) {
  if (kernel.judged.load(std::memory_order_acquire) == request_.sequence) return kernel.match.load();
  const Match match = pattern_->match(kernel.symbol, kernel.demangled, kernel.id);
  kernel.match.store(match);
  kernel.judged.store(request_.sequence, std::memory_order_release);
  return match;
}

void Controller::resolve() {
  const std::uint64_t generation = process_.kernels.generation();
  if (generation == resolved_generation_) return;
  resolved_generation_ = generation;
  std::vector<Candidate> exact, part;
  for (Candidate& candidate : process_.kernels.candidates()) {
    const Match match = pattern_->match(candidate.symbol, candidate.demangled, candidate.id);
    if (match == Match::exact) exact.push_back(std::move(candidate));
    if (match == Match::part) part.push_back(std::move(candidate));
  }
  candidates_ = exact.empty() ? std::move(part) : std::move(exact);
}

bool Controller::wanted_launch(const Launch& launch, const Kernel& kernel, std::uint64_t nth) {
  if (!request_.any_grid()) {
    return nth >= request_.nth && launch.work_items(0) == request_.grid[0] &&
           launch.work_items(1) == request_.grid[1] && launch.work_items(2) == request_.grid[2];
  }
  if (request_.nth == 0 || nth == request_.nth) return true;
  if (nth > request_.nth && (control_.only_pid != 0 || control_.processes.load() <= 1)) {
    report(CaptureState::failed, "dispatch " + std::to_string(request_.nth) + " of " + kernel.demangled +
                                     " was before the request; this is dispatch " + std::to_string(nth));
    disarm();
  }
  return false;
}

Capture* Controller::claim(const Launch& launch, Kernel& kernel, std::uint64_t nth) {
  // Without the lock, for the kernels that are not meant.
  if (kernel.judged.load(std::memory_order_acquire) == seen_.load(std::memory_order_relaxed) &&
      kernel.match.load() == Match::none) {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  if (!armed_.load() || active_.load() != nullptr) return nullptr;
  if (judge(kernel) == Match::none) return nullptr;
  resolve();
  if (candidates_.size() > 1) {
    std::string message;
    for (const Candidate& candidate : candidates_)
      message += id_text(candidate.id) + '\t' + candidate.demangled + '\n';
    report(CaptureState::ambiguous, message);
    disarm();
    return nullptr;
  }
  if (candidates_.empty() || candidates_.front().id != kernel.id) return nullptr;
  if (!wanted_launch(launch, kernel, nth)) return nullptr;
  std::uint32_t nobody = 0;
  if (!control_.owner_pid.compare_exchange_strong(nobody, static_cast<std::uint32_t>(::getpid()))) {
    disarm();  // another process of the session was first
    return nullptr;
  }
  control_.accepted_sequence.store(request_.sequence, std::memory_order_release);
  auto capture = std::make_unique<Capture>(process_, request_, launch, kernel, nth);
  Capture* started = capture.release();  // until its after(), which ends in capture_ended()
  active_.store(started, std::memory_order_seq_cst);
  disarm();
  return started;
}

void Controller::wait_while_active() {
  if (active_.load(std::memory_order_acquire) == nullptr) return;
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return active_.load() == nullptr; });
}

void Controller::capture_ended() {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Capture>(active_.exchange(nullptr, std::memory_order_seq_cst)).reset();
  if (!armed_.load()) watch_launches(kForRequest, false);
  ended_.notify_all();
}

}  // namespace kerncap::interpose::cuda
