// One dispatch in flight: hands its workgroups to the host threads that take part, and collects what
// happened.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "sim/device/code_map.h"
#include "sim/device/device_time.h"
#include "sim/device/dispatch.h"
#include "sim/device/global_wave_sync.h"
#include "sim/device/memory_port.h"

namespace kerncap::sim {

class Executor {
 public:
  struct Limits {
    std::uint64_t wave_instructions = 0;
    double seconds = 0;
    const std::atomic<bool>* cancel = nullptr;
  };
  Executor(const DispatchInfo& info, CodeMap& code, GlobalWaveSync& wave_sync, const AddressSpace& memory,
           const GpuConfig& config, Limits limits, std::uint64_t schedule, bool log_writes,
           const std::function<std::string(std::uint64_t)>& resolver);

  // Takes part until no workgroup is left. Called by the dispatching thread and by helpers.
  void take_part();
  // Waits for helpers that are still at work; nobody starts after this.
  void finish();
  [[nodiscard]] DispatchOutcome outcome(std::vector<WrittenRange>* written);

 private:
  class Thread;
  std::optional<std::uint64_t> next_workgroup();
  void stop_with(Fault fault, std::uint64_t workgroup);
  bool over_limit(Thread& thread, std::uint64_t executed);

  const DispatchInfo& info_;
  CodeMap& code_;
  GlobalWaveSync& wave_sync_;
  const AddressSpace& memory_;
  const GpuConfig& config_;
  const Limits limits_;
  const bool log_writes_;
  const std::function<std::string(std::uint64_t)>& resolver_;
  const std::chrono::steady_clock::time_point start_;
  const std::uint64_t total_;
  std::uint64_t step_ = 1, first_ = 0;  // the schedule: workgroup n is (first + n * step) mod total

  std::atomic<std::uint64_t> claimed_{0};
  std::atomic<std::uint64_t> executed_{0};
  std::atomic<bool> stopped_{false};

  std::mutex mutex_;
  std::condition_variable idle_;
  unsigned active_ = 0;
  bool closed_ = false;
  std::optional<Fault> fault_;
  std::uint64_t fault_workgroup_ = ~0ull;
  DeviceTime time_;
  WriteLog writes_;
  std::uint64_t waves_ = 0;
};

}  // namespace kerncap::sim
