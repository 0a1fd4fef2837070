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

void Launcher::wait(double limit_seconds) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const CUresult result = runtime_.cuda.cuEventQuery(after_);
    if (result == CUDA_SUCCESS) return;
    if (result != CUDA_ERROR_NOT_READY) throw_fault(result);
    const auto passed = std::chrono::steady_clock::now() - start;
    if (std::chrono::duration<double>(passed).count() > limit_seconds) {
      char text[64];
      std::snprintf(text, sizeof text, "the dispatch did not end within %.3g s", limit_seconds);
      throw ReplayError(ErrorClass::timeout, text);
    }
    if (passed > kSpin) {
      const timespec step{0, 50'000};
      ::nanosleep(&step, nullptr);
    }
  }
}

DispatchTime Launcher::run(const Launch& launch) {
  const snapshot::CudaLaunchRecord& shape = launch.shape->record;
  std::vector<CUlaunchAttribute> attributes;
  for (const snapshot::CudaLaunchAttribute& kept : launch.shape->attributes) {
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
  CUlaunchConfig config{};
  config.gridDimX = shape.grid[0], config.gridDimY = shape.grid[1], config.gridDimZ = shape.grid[2];
  config.blockDimX = shape.block[0], config.blockDimY = shape.block[1], config.blockDimZ = shape.block[2];
  if (launch.reshaped) {
    const abi::hsa_kernel_dispatch_packet_t& packet = launch.packet;
    config.blockDimX = packet.workgroup_size_x, config.blockDimY = 1, config.blockDimZ = 1;
    config.gridDimX = packet.grid_size_x / packet.workgroup_size_x;
    config.gridDimY = packet.grid_size_y, config.gridDimZ = packet.grid_size_z;
  }
  config.sharedMemBytes = launch.packet.group_segment_size;
  config.hStream = runtime_.stream;
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  std::size_t bytes = launch.parameter_bytes;
  void* extra[] = {reinterpret_cast<void*>(kCudaLaunchParamBufferPointer), launch.packet.kernarg_address,
                   reinterpret_cast<void*>(kCudaLaunchParamBufferSize), &bytes,
                   reinterpret_cast<void*>(kCudaLaunchParamEnd)};
  runtime_.finish_copies();
  DispatchTime result;
  std::uint64_t start = 0, end = 0;
  if (timer_ == Timer::record) take_kernel_record(&start, &end);  // those of other kernels
  result.submitted_ns = monotonic_ns();
  const auto function = reinterpret_cast<CUfunction>(launch.packet.kernel_object);
  runtime_.check(runtime_.cuda.cuEventRecord(before_, runtime_.stream), "recording an event");
  const CUresult launched =
      runtime_.cuda.cuLaunchKernelEx(&config, function, nullptr, bytes != 0 ? extra : nullptr);
  if (launched != CUDA_SUCCESS) {
    throw ReplayError(ErrorClass::usage,
                      "the driver refuses to launch the kernel: " + runtime_.status_text(launched));
  }
  runtime_.check(runtime_.cuda.cuEventRecord(after_, runtime_.stream), "recording an event");
  wait(launch.limit_seconds);
  result.seen_ns = monotonic_ns();
  if (timer_ == Timer::record) {
    for (int i = 0; i < 200 && !take_kernel_record(&start, &end); ++i) {
      const timespec step{0, 50'000};
      ::nanosleep(&step, nullptr);
    }
    result.start_ns = start;
    result.end_ns = end;
  } else if (timer_ == Timer::event) {
    float milliseconds = 0;
    runtime_.check(runtime_.cuda.cuEventElapsedTime(&milliseconds, before_, after_), "reading events");
    result.start_ns = result.submitted_ns;
    result.end_ns =
        result.start_ns + static_cast<std::uint64_t>(static_cast<double>(milliseconds) * 1e6 + 0.5);
  }
  return result;
}

void Launcher::flush_caches(std::uint64_t bytes) {
  if (flush_buffer_ == 0) {
    runtime_.check(runtime_.cuda.cuMemAlloc(&flush_buffer_, bytes),
                   "allocating the buffer that displaces cached data");
    flush_bytes_ = bytes;
  }
  runtime_.finish_copies();  // before it, or what they leave in the caches stays
  runtime_.check(runtime_.cuda.cuMemsetD8Async(flush_buffer_, 0x5A, flush_bytes_, runtime_.stream),
                 "displacing cached data");
}

void Launcher::settle() {
  runtime_.finish_copies();
  runtime_.check(runtime_.cuda.cuStreamSynchronize(runtime_.stream), "waiting for the stream");
}

}  // namespace kerncap::replay
