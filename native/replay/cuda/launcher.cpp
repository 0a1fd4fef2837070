#include "replay/cuda/launcher.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "replay/cuda/timer.h"
#include "replay/error.h"

namespace kerncap::replay {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

constexpr auto kSpin = std::chrono::milliseconds(2);  // ends are seen at once for so long, then every 50 us

std::uint64_t monotonic_ns() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

// Whether a captured attribute does not belong to a launch of other clusters.
bool is_replaced(int attribute, std::uint32_t cluster) {
  return attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
         attribute == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION ||
         (attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE && cluster <= 1);
}

}  // namespace

Launcher::Launcher(Runtime& runtime, const Agent&, bool, bool timestamps) : runtime_(runtime) {
  runtime_.check(runtime_.cuda.cuEventCreate(&before_, CU_EVENT_DEFAULT), "creating an event");
  runtime_.check(runtime_.cuda.cuEventCreate(&after_, CU_EVENT_DEFAULT), "creating an event");
  // A profiler around this process (ncu) has CUPTI's place: events then, which KERNCAP_CUDA_TIMER=event asks
  // for.
  const char* wanted = std::getenv("KERNCAP_CUDA_TIMER");
  const bool events = wanted != nullptr && std::strcmp(wanted, "event") == 0;
  if (!timestamps) {
    timer_ = Timer::none;
  } else if (!events && start_kernel_records()) {
    timer_ = Timer::record;
  }
}

void Launcher::throw_fault(CUresult result) const {
  throw ReplayError(ErrorClass::fault, runtime_.status_text(result));
}

void Launcher::wait(double limit_seconds, std::uint64_t count) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const CUresult result = runtime_.cuda.cuEventQuery(after_);
    if (result == CUDA_SUCCESS) return;
    if (result != CUDA_ERROR_NOT_READY) throw_fault(result);
    const auto passed = std::chrono::steady_clock::now() - start;
    if (std::chrono::duration<double>(passed).count() > limit_seconds * static_cast<double>(count)) {
      char text[96];
      std::snprintf(text, sizeof text, "%s did not end within %.3g s",
                    count == 1 ? "the dispatch" : "dispatches, one after the other,",
                    limit_seconds * static_cast<double>(count));
      throw ReplayError(ErrorClass::timeout, text);
    }
    if (passed > kSpin) {
      const timespec step{0, 50'000};
      ::nanosleep(&step, nullptr);
    }
  }
}

// What the driver is called with.
struct Launcher::Prepared {
  explicit Prepared(const Launch& launch, CUstream stream);
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  std::vector<CUlaunchAttribute> attributes;
  CUlaunchConfig config{};
  CUfunction function = nullptr;
  std::size_t bytes = 0;
  void* extra[5]{};
};

Launcher::Prepared::Prepared(const Launch& launch, CUstream stream) {
  const snapshot::CudaLaunchRecord& shape = launch.shape->record;
  for (const snapshot::CudaLaunchAttribute& kept : launch.shape->attributes) {
    if (launch.reshaped && is_replaced(kept.id, launch.cluster)) continue;
    CUlaunchAttribute attribute{};
    attribute.id = static_cast<CUlaunchAttributeID>(kept.id);
    std::memcpy(attribute.value.bytes, kept.value, sizeof attribute.value.bytes);
    attributes.push_back(attribute);
  }
  const bool has_cooperative =
      std::any_of(attributes.begin(), attributes.end(),
                  [](const CUlaunchAttribute& a) { return a.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE; });
  if ((shape.flags & snapshot::kCudaCooperative) != 0 && !has_cooperative) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    attributes.push_back(attribute);
  }
  if (launch.reshaped && launch.cluster > 1) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = launch.cluster;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    attributes.push_back(attribute);
  }
  config.gridDimX = shape.grid[0], config.gridDimY = shape.grid[1], config.gridDimZ = shape.grid[2];
  config.blockDimX = shape.block[0], config.blockDimY = shape.block[1], config.blockDimZ = shape.block[2];
  if (launch.reshaped) {
    const abi::hsa_kernel_dispatch_packet_t& packet = launch.packet;
    config.blockDimX = packet.workgroup_size_x, config.blockDimY = 1, config.blockDimZ = 1;
    config.gridDimX = packet.grid_size_x / packet.workgroup_size_x;
    config.gridDimY = packet.grid_size_y, config.gridDimZ = packet.grid_size_z;
  }
  config.sharedMemBytes = launch.packet.group_segment_size;
  config.hStream = stream;
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  function = reinterpret_cast<CUfunction>(launch.packet.kernel_object);
  bytes = launch.parameter_bytes;
  extra[0] = reinterpret_cast<void*>(kCudaLaunchParamBufferPointer);
  extra[1] = launch.packet.kernarg_address;
  extra[2] = reinterpret_cast<void*>(kCudaLaunchParamBufferSize);
  extra[3] = &bytes;
  extra[4] = reinterpret_cast<void*>(kCudaLaunchParamEnd);
}

DispatchTime Launcher::submit(Prepared& prepared) {
  DispatchTime time;
  time.submitted_ns = monotonic_ns();
  // Nothing else in front of the kernel: what it waits for on the device is part of its time.
  if (timer_ == Timer::event)
    runtime_.check(runtime_.cuda.cuEventRecord(before_, runtime_.stream), "recording an event");
  const CUresult launched = runtime_.cuda.cuLaunchKernelEx(&prepared.config, prepared.function, nullptr,
                                                           prepared.bytes != 0 ? prepared.extra : nullptr);
  if (launched != CUDA_SUCCESS) {
    throw ReplayError(ErrorClass::usage,
                      "the driver refuses to launch the kernel: " + runtime_.status_text(launched));
  }
  return time;
}

// By the kernels' records. What is submitted while a kernel runs follows it at once, as in a program that
// launches ahead.
void Launcher::run_timed(Prepared& prepared, std::uint64_t count, double limit_seconds,
                         std::vector<DispatchTime>* times) {
  if (records_late_) drop_kernel_records();
  records_late_ = false;
  for (std::uint64_t i = 0; i < count; ++i) times->push_back(submit(prepared));
  runtime_.check(runtime_.cuda.cuEventRecord(after_, runtime_.stream), "recording an event");
  wait(limit_seconds, count);
  for (DispatchTime& time : *times) time.seen_ns = monotonic_ns();
  std::vector<KernelTime> records;
  for (int i = 0; i < 200 && !take_kernel_records(count, &records); ++i) {
    const timespec step{0, 50'000};
    ::nanosleep(&step, nullptr);
  }
  records_late_ = records.empty();
  for (std::size_t i = 0; i < records.size(); ++i) {
    (*times)[i].start_ns = records[i].start;
    (*times)[i].end_ns = records[i].end;
  }
}

DispatchTime Launcher::run_one(Prepared& prepared, double limit_seconds) {
  DispatchTime time = submit(prepared);
  runtime_.check(runtime_.cuda.cuEventRecord(after_, runtime_.stream), "recording an event");
  wait(limit_seconds, 1);
  time.seen_ns = monotonic_ns();
  if (timer_ == Timer::event) {
    float milliseconds = 0;
    runtime_.check(runtime_.cuda.cuEventElapsedTime(&milliseconds, before_, after_), "reading events");
    time.start_ns = time.submitted_ns;
    time.end_ns = time.start_ns + static_cast<std::uint64_t>(static_cast<double>(milliseconds) * 1e6 + 0.5);
  }
  return time;
}

std::vector<DispatchTime> Launcher::run(const Launch& launch, std::uint64_t count) {
  Prepared prepared(launch, runtime_.stream);
  std::vector<DispatchTime> times;
  runtime_.finish_stages();
  // Without records the clock of the system has to tell, which sees kernels one by one.
  if (timer_ == Timer::record && !records_late_) {
    run_timed(prepared, count, launch.limit_seconds, &times);
  } else if (timer_ == Timer::record) {
    for (std::uint64_t i = 0; i < count; ++i) {
      std::vector<DispatchTime> one;
      run_timed(prepared, 1, launch.limit_seconds, &one);
      times.push_back(one.front());
    }
  } else {
    for (std::uint64_t i = 0; i < count; ++i) times.push_back(run_one(prepared, launch.limit_seconds));
  }
  return times;
}

void Launcher::flush_caches(std::uint64_t bytes) {
  if (flush_buffer_ == 0) {
    runtime_.check(runtime_.cuda.cuMemAlloc(&flush_buffer_, bytes),
                   "allocating the buffer that displaces cached data");
    flush_bytes_ = bytes;
  }
  runtime_.finish_stages();  // before it, or what they leave in the caches stays
  runtime_.check(runtime_.cuda.cuMemsetD8Async(flush_buffer_, 0x5A, flush_bytes_, runtime_.stream),
                 "displacing cached data");
}

}  // namespace kerncap::replay
