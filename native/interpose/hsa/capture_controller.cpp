#include "interpose/hsa/capture_controller.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "interpose/hsa/capture.h"
#include "interpose/hsa/process.h"

namespace kerncap::interpose {

using live::CaptureState;

namespace {

std::uint32_t code(CaptureState state) { return static_cast<std::uint32_t>(state); }

std::string field_text(const char* field, std::size_t bytes) { return {field, ::strnlen(field, bytes)}; }

}  // namespace

CaptureController::CaptureController(Process& process)
    : process_(process), control_(process.control->block()) {}
CaptureController::~CaptureController() = default;

void CaptureController::poll() {
  const std::uint64_t sequence = control_.request_sequence.load(std::memory_order_acquire);
  if (sequence != seen_.load(std::memory_order_relaxed)) take_request(sequence);
}

void CaptureController::take_request(std::uint64_t sequence) {
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
}

void CaptureController::disarm() {
  armed_.store(false, std::memory_order_release);
  pattern_.reset();
}

void CaptureController::report(CaptureState state, const std::string& message) {
  live::set_text(control_.message, sizeof control_.message, message);
  control_.accepted_sequence.store(request_.sequence, std::memory_order_release);
  control_.state.store(code(state), std::memory_order_release);
}

Match CaptureController::judge(Kernel& kernel) {
  if (kernel.judged.load(std::memory_order_acquire) == request_.sequence) return kernel.match.load();
  Match match = pattern_->match(kernel.symbol, demangle(kernel.symbol), kernel.id);
  // The runtime's own copy kernels are only meant when they are named in full.
  if (match == Match::part && kernel.kind == live::KernelKind::runtime) match = Match::none;
  kernel.match.store(match);
  kernel.judged.store(request_.sequence, std::memory_order_release);
  return match;
}

void CaptureController::resolve() {
  const std::uint64_t generation = process_.kernels.generation();
  if (generation == resolved_generation_) return;
  resolved_generation_ = generation;
  std::vector<const Kernel*> exact, part;
  for (Kernel* kernel : process_.kernels.loaded_kernels()) {
    const Match match = judge(*kernel);
    if (match == Match::exact) exact.push_back(kernel);
    if (match == Match::part) part.push_back(kernel);
  }
  candidates_ = exact.empty() ? std::move(part) : std::move(exact);
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Kernel* a, const Kernel* b) { return a->id < b->id; });
  const auto last = std::unique(candidates_.begin(), candidates_.end(),
                                [](const Kernel* a, const Kernel* b) { return a->id == b->id; });
  candidates_.erase(last, candidates_.end());
}

bool CaptureController::wanted_dispatch(const Packet& packet, const Kernel& kernel, std::uint64_t nth) {
  const auto& d = packet.dispatch;
  if (!request_.any_grid()) {
    return nth >= request_.nth && d.grid_size_x == request_.grid[0] && d.grid_size_y == request_.grid[1] &&
           d.grid_size_z == request_.grid[2];
  }
  if (request_.nth == 0 || nth == request_.nth) return true;
  if (nth > request_.nth && (control_.only_pid != 0 || control_.processes.load() <= 1)) {
    report(CaptureState::failed, "dispatch " + std::to_string(request_.nth) + " of " +
                                     demangle(kernel.symbol) + " was before the request; this is dispatch " +
                                     std::to_string(nth));
    disarm();
  }
  return false;
}

Capture* CaptureController::claim(InterceptQueue& queue, const Packet& packet, Kernel& kernel,
                                  std::uint32_t row, std::uint64_t nth) {
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
    for (const Kernel* candidate : candidates_)
      message += id_text(candidate->id) + '\t' + demangle(candidate->symbol) + '\n';
    report(CaptureState::ambiguous, message);
    disarm();
    return nullptr;
  }
  if (candidates_.empty() || candidates_.front()->id != kernel.id) return nullptr;
  if (!wanted_dispatch(packet, kernel, nth)) return nullptr;
  std::uint32_t nobody = 0;
  if (!control_.owner_pid.compare_exchange_strong(nobody, static_cast<std::uint32_t>(::getpid()))) {
    disarm();  // another process of the session was first
    return nullptr;
  }
  control_.accepted_sequence.store(request_.sequence, std::memory_order_release);
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

void CaptureController::wait_while_active() {
  if (active_.load(std::memory_order_acquire) == nullptr) return;
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return active_.load() == nullptr; });
}

bool CaptureController::put_off(std::function<void()> call) {
  if (active_.load(std::memory_order_acquire) == nullptr) return false;
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

void CaptureController::process_ends() { wait_while_active(); }

}  // namespace kerncap::interpose
