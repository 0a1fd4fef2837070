// Streams, events and host functions.
#include <algorithm>
#include <mutex>

#include "abi/hsa_functions.h"
#include "sim/hip/error.h"
#include "sim/hip/runtime.h"
#include "sim/hip/stream.h"

using namespace kerncap::sim::hip;
namespace abi = kerncap::abi;

namespace {

constexpr int kLeastPriority = 1;
constexpr int kGreatestPriority = -1;

Event* as_event(hipEvent_t event) { return reinterpret_cast<Event*>(event); }

hipError_t missing_stream() { return current_gpu() == nullptr ? hipErrorNoDevice : hipErrorInvalidHandle; }

hipError_t run_on_host(hipStream_t handle, std::function<void()> function) {
  Stream* stream = find_stream(handle);
  if (stream == nullptr) return missing_stream();
  const std::lock_guard lock(stream->gpu().mutex);
  if (const hipError_t error = join_null_stream(*stream); error != hipSuccess) return error;
  return stream->host(std::move(function));
}

// When the device reached the event's marker, in ticks of the HSA clock.
bool reached(const Event& event, std::uint64_t* ticks) {
  abi::hsa_amd_profiling_dispatch_time_t time{};
  if (abi::hsa_amd_profiling_get_dispatch_time(event.agent, event.marker->handle(), &time) !=
      abi::HSA_STATUS_SUCCESS) {
    return false;
  }
  *ticks = time.end;
  return time.end != 0;
}

}  // namespace

hipError_t hipStreamCreate(hipStream_t* stream) {
  return hipStreamCreateWithPriority(stream, hipStreamDefault, 0);
}

hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned int flags) {
  return hipStreamCreateWithPriority(stream, flags, 0);
}

hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned int flags, int priority) {
  if (stream == nullptr || (flags & ~unsigned{hipStreamNonBlocking}) != 0)
    return record(hipErrorInvalidValue);
  Gpu* gpu = current_gpu();
  if (gpu == nullptr) return record(hipErrorNoDevice);
  auto made = std::make_unique<Stream>(*gpu, flags, std::clamp(priority, kGreatestPriority, kLeastPriority));
  *stream = reinterpret_cast<hipStream_t>(made.get());
  const std::lock_guard lock(gpu->mutex);
  gpu->streams.push_back(std::move(made));
  return hipSuccess;
}

hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return hipSuccess;
}

hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int* flags) {
  const Stream* found = find_stream(stream);
  if (found == nullptr) return record(missing_stream());
  if (flags == nullptr) return record(hipErrorInvalidValue);
  *flags = found->flags();
  return hipSuccess;
}

hipError_t hipStreamGetPriority(hipStream_t stream, int* priority) {
  const Stream* found = find_stream(stream);
  if (found == nullptr) return record(missing_stream());
  if (priority == nullptr) return record(hipErrorInvalidValue);
  *priority = found->priority();
  return hipSuccess;
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  Stream* found = find_stream(stream);
  if (found == nullptr || found == found->gpu().null_stream) return record(hipErrorInvalidHandle);
  Gpu& gpu = found->gpu();
  if (const hipError_t error = synchronize(*found); error != hipSuccess) return record(error);
  const std::lock_guard lock(gpu.mutex);
  std::erase_if(gpu.streams, [found](const auto& entry) { return entry.get() == found; });
  return hipSuccess;
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
  Stream* found = find_stream(stream);
  return record(found == nullptr ? missing_stream() : synchronize(*found));
}

hipError_t hipStreamQuery(hipStream_t stream) {
  Stream* found = find_stream(stream);
  if (found == nullptr) return record(missing_stream());
  const std::lock_guard lock(found->gpu().mutex);
  if (const hipError_t error = join_null_stream(*found); error != hipSuccess) return record(error);
  bool failed = false;
  const SignalRef tail = found->tail(&failed);
  if (failed) return record(hipErrorOutOfMemory);
  return tail == nullptr || tail->done() ? hipSuccess : hipErrorNotReady;
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int) {
  Stream* found = find_stream(stream);
  if (found == nullptr) return record(missing_stream());
  if (event == nullptr) return record(hipErrorInvalidHandle);
  SignalRef marker;
  {
    const std::lock_guard lock(as_event(event)->mutex);
    marker = as_event(event)->marker;
  }
  const std::lock_guard lock(found->gpu().mutex);
  found->wait_for(marker);
  return hipSuccess;
}

hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void* user_data,
                                unsigned int flags) {
  if (callback == nullptr || flags != 0) return record(hipErrorInvalidValue);
  return record(run_on_host(stream, [=] { callback(stream, hipSuccess, user_data); }));
}

hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void* user_data) {
  if (function == nullptr) return record(hipErrorInvalidValue);
  return record(run_on_host(stream, [=] { function(user_data); }));
}

hipError_t hipEventCreate(hipEvent_t* event) { return hipEventCreateWithFlags(event, hipEventDefault); }

hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned int flags) {
  if (event == nullptr) return record(hipErrorInvalidValue);
  auto made = std::make_unique<Event>();
  made->flags = flags;
  *event = reinterpret_cast<hipEvent_t>(made.release());  // hipEventDestroy owns it
  return hipSuccess;
}

hipError_t hipEventDestroy(hipEvent_t event) {
  if (event == nullptr) return record(hipErrorInvalidHandle);
  const std::unique_ptr<Event> owned(as_event(event));
  return hipSuccess;
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  if (event == nullptr) return record(hipErrorInvalidHandle);
  Stream* found = find_stream(stream);
  if (found == nullptr) return record(missing_stream());
  SignalRef marker;
  {
    const std::lock_guard lock(found->gpu().mutex);
    if (const hipError_t error = join_null_stream(*found); error != hipSuccess) return record(error);
    if (const hipError_t error = found->mark(&marker); error != hipSuccess) return record(error);
  }
  Event& recorded = *as_event(event);
  const std::lock_guard lock(recorded.mutex);
  recorded.marker = std::move(marker);
  recorded.recorded = true;
  recorded.agent = found->gpu().agent;
  return hipSuccess;
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  if (event == nullptr) return record(hipErrorInvalidHandle);
  SignalRef marker;
  {
    const std::lock_guard lock(as_event(event)->mutex);
    marker = as_event(event)->marker;
  }
  if (marker != nullptr) marker->wait();
  return hipSuccess;
}

hipError_t hipEventQuery(hipEvent_t event) {
  if (event == nullptr) return record(hipErrorInvalidHandle);
  const std::lock_guard lock(as_event(event)->mutex);
  const SignalRef& marker = as_event(event)->marker;
  return marker == nullptr || marker->done() ? hipSuccess : hipErrorNotReady;
}

hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  if (milliseconds == nullptr) return record(hipErrorInvalidValue);
  if (start == nullptr || stop == nullptr) return record(hipErrorInvalidHandle);
  std::uint64_t ticks[2] = {};
  Event* const events[2] = {as_event(start), as_event(stop)};
  for (int i = 0; i < 2; ++i) {
    const std::lock_guard lock(events[i]->mutex);
    if (!events[i]->recorded || (events[i]->flags & hipEventDisableTiming) != 0)
      return record(hipErrorInvalidHandle);
    if (!events[i]->marker->done()) return hipErrorNotReady;
    if (!reached(*events[i], &ticks[i])) return record(hipErrorNotSupported);
  }
  const double seconds = static_cast<double>(static_cast<std::int64_t>(ticks[1] - ticks[0])) /
                         static_cast<double>(runtime()->clock_hz);
  *milliseconds = static_cast<float>(seconds * 1e3);
  return hipSuccess;
}
