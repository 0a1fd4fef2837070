#include "sim/hsa/copy_engine.h"

#include <algorithm>

#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

// A simulated copy takes a start-up time and then moves 64 bytes a nanosecond, about what a PCIe 5 x16 link
// does.
constexpr std::uint64_t kStartUpNs = 2000;
constexpr std::uint64_t kBytesPerNs = 64;

}  // namespace

CopyEngine::~CopyEngine() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  MultiWait::wake_all();
  if (thread_.joinable()) thread_.join();
}

void CopyEngine::enqueue(std::vector<SignalRef> dependencies, SignalRef completion, std::uint64_t bytes,
                         std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    added_.push_back({std::move(dependencies), std::move(completion), bytes, std::move(work)});
    if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
  }
  MultiWait::wake_all();
}

void CopyEngine::loop() {
  while (true) {
    const std::uint32_t ticket = MultiWait::ticket();
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return;
      for (Job& job : added_) waiting_.push_back(std::move(job));
      added_.clear();
    }
    // In order of submission among those that may run: a job that waits holds up no other.
    bool ran = false;
    std::vector<SignalCondition> open;
    for (auto job = waiting_.begin(); job != waiting_.end();) {
      bool ready = true;
      for (const SignalRef& dependency : job->dependencies) {
        if (!dependency || dependency->load() < 1) continue;
        ready = false;
        open.push_back({dependency.get(), abi::HSA_SIGNAL_CONDITION_LT, 1});
      }
      if (!ready) {
        ++job;
        continue;
      }
      run(*job);
      job = waiting_.erase(job);
      ran = true;
    }
    if (!ran) MultiWait::sleep(ticket, open, 3'600'000'000'000);
  }
}

void CopyEngine::run(Job& job) {
  for (const SignalRef& dependency : job.dependencies) {
    if (!dependency || dependency->load() >= 0) continue;
    if (job.completion) job.completion->store(dependency->load());
    return;
  }
  const std::uint64_t start = std::max(runtime_->clock.now_ticks(), last_end_ticks_);
  job.work();
  const std::uint64_t end = start + (kStartUpNs + job.bytes / kBytesPerNs) / kNanosecondsPerTick;
  last_end_ticks_ = end;
  runtime_->clock.advance_to(end * kNanosecondsPerTick);
  if (!job.completion) return;
  if (runtime_->profile_copies.load(std::memory_order_relaxed)) {
    job.completion->amd.start_ts = start;
    job.completion->amd.end_ts = end;
  }
  job.completion->subtract(1);
}

}  // namespace kerncap::sim::rt
