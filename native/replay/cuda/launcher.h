// One stream on the GPU, and kernels on it one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "abi/hsa.h"
#include "replay/cuda/runtime.h"
#include "replay/range_set.h"
#include "snapshot/capture_reader.h"

namespace kerncap::replay {

struct Launch {
  // As DispatchRecord::packet has it (records.h), but: kernel_object is the CUfunction, kernarg_address the
  // parameters, packed.
  abi::hsa_kernel_dispatch_packet_t packet{};
  double limit_seconds = 60;
  // Its grid and block are the packet's, and blocks run in clusters of `cluster` along x (0 or 1: in none);
  // not those of `shape`.
  bool reshaped = false;
  std::uint32_t cluster = 0;
  const snapshot::CudaLaunch* shape = nullptr;
  std::uint64_t parameter_bytes = 0;
};

// When a kernel ran: by its record or by events around it, and by the system clock before it was submitted
// and after it was seen to have ended. Zero where there is none; what can be believed is the client's to say.
struct DispatchTime {
  std::uint64_t start_ns = 0, end_ns = 0;
  std::uint64_t submitted_ns = 0, seen_ns = 0;
};

class Launcher {
 public:
  // `timestamps` false: kernels are treated as having none of their own.
  Launcher(Runtime& runtime, const Agent& agent, bool cooperative, bool timestamps);

  // Runs one kernel to its end, `count` times. Where kernels have records of their own, all of them are
  // submitted before the first is waited for. The limit is each one's. Throws ReplayError: usage where the
  // driver refuses the launch; fault or timeout, after which the process is of no more use.
  std::vector<DispatchTime> run(const Launch& launch, std::uint64_t count);

  // This device does not tell what is stored to.
  RangeSet take_written() { return {}; }
  void track_writes(bool) {}
  [[nodiscard]] bool can_track_writes() const { return false; }

  // Writes `bytes` of a buffer, so that the caches hold nothing of the kernel's.
  void flush_caches(std::uint64_t bytes);
  // What follows comes after every copy so far.
  void settle() { runtime_.finish_stages(); }

  // What times come from: CUPTI's records, events around the kernel, or the system's clock.
  [[nodiscard]] const char* timer() const {
    return timer_ == Timer::record ? "cupti" : timer_ == Timer::event ? "event" : "system";
  }
  [[nodiscard]] std::uint64_t queue_address() const { return 0; }

 private:
  enum class Timer { record, event, none };
  struct Prepared;
  DispatchTime submit(Prepared& prepared);
  void run_timed(Prepared& prepared, std::uint64_t count, double limit_seconds,
                 std::vector<DispatchTime>* times);
  DispatchTime run_one(Prepared& prepared, double limit_seconds);
  void wait(double limit_seconds, std::uint64_t count);
  [[noreturn]] void throw_fault(abi::CUresult result) const;

  Runtime& runtime_;
  Timer timer_ = Timer::event;
  bool records_late_ = false;  // what ran last has not had all of its records
  abi::CUevent before_ = nullptr, after_ = nullptr;
  abi::CUdeviceptr flush_buffer_ = 0;
  std::uint64_t flush_bytes_ = 0;
};

}  // namespace kerncap::replay
