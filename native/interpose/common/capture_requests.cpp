#include "interpose/common/capture_requests.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "live/control_file.h"

namespace kerncap::interpose {

using live::CaptureState;

namespace {

std::uint32_t code(CaptureState state) { return static_cast<std::uint32_t>(state); }

std::string field_text(const char* field, std::size_t bytes) { return {field, ::strnlen(field, bytes)}; }

}  // namespace

void CaptureRequests::poll() {
  const std::uint64_t sequence = control_.request_sequence.load(std::memory_order_acquire);
  if (sequence != seen_.load(std::memory_order_relaxed)) take_request(sequence);
}

void CaptureRequests::take_request(std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  if (sequence == seen_.load()) return;
  RunningCapture* active = active_.load();
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
  watch(true);
}

void CaptureRequests::disarm() {
  armed_.store(false, std::memory_order_release);
  pattern_.reset();
  watch(active_.load() != nullptr);
}

void CaptureRequests::report(CaptureState state, const std::string& message) {
  live::set_text(control_.message, sizeof control_.message, message);
  control_.accepted_sequence.store(request_.sequence, std::memory_order_release);
  control_.state.store(code(state), std::memory_order_release);
}

bool CaptureRequests::outdated(std::uint64_t generation) {
  if (generation == resolved_generation_) return false;
  resolved_generation_ = generation;
  return true;
}

void CaptureRequests::set_candidates(std::vector<Candidate> exact, std::vector<Candidate> part) {
  candidates_ = exact.empty() ? std::move(part) : std::move(exact);
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  const auto last = std::unique(candidates_.begin(), candidates_.end(),
                                [](const Candidate& a, const Candidate& b) { return a.id == b.id; });
  candidates_.erase(last, candidates_.end());
}

bool CaptureRequests::only_candidate(std::uint64_t id, bool chosen) {
  const auto of_one_name = [this](const Candidate& c) { return c.symbol == candidates_.front().symbol; };
  if (chosen && std::all_of(candidates_.begin(), candidates_.end(), of_one_name)) {
    return std::any_of(candidates_.begin(), candidates_.end(),
                       [id](const Candidate& c) { return c.id == id; });
  }
  if (candidates_.size() > 1) {
    std::string message;
    for (const Candidate& candidate : candidates_)
      message += id_text(candidate.id) + '\t' + candidate.demangled + '\n';
    report(CaptureState::ambiguous, message);
    disarm();
    return false;
  }
  return !candidates_.empty() && candidates_.front().id == id;
}

bool CaptureRequests::wanted(const std::uint32_t (&work_items)[3], std::uint64_t nth,
                             const std::string& symbol) {
  if (!request_.any_grid())
    return nth >= request_.nth && std::equal(std::begin(work_items), std::end(work_items), request_.grid);
  if (request_.nth == 0 || nth == request_.nth) return true;
  if (nth > request_.nth && (control_.only_pid != 0 || control_.processes.load() <= 1)) {
    report(CaptureState::failed, "dispatch " + std::to_string(request_.nth) + " of " + demangle(symbol) +
                                     " was before the request; this is dispatch " + std::to_string(nth));
    disarm();
  }
  return false;
}

bool CaptureRequests::own() {
  std::uint32_t nobody = 0;
  if (!control_.owner_pid.compare_exchange_strong(nobody, static_cast<std::uint32_t>(::getpid()))) {
    disarm();
    return false;
  }
  control_.accepted_sequence.store(request_.sequence, std::memory_order_release);
  return true;
}

void CaptureRequests::wait_while_active() {
  if (!is_active()) return;
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return active_.load() == nullptr; });
}

}  // namespace kerncap::interpose
