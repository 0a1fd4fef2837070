#include "sim/hip/stream.h"

#include <algorithm>
#include <utility>

#include "abi/hsa_functions.h"

namespace kerncap::sim::hip {
namespace {

constexpr std::size_t kMaxQueues = 4;  // as many as AMD's HIP uses for streams of one priority

struct HostTask {
  std::function<void()> function;
  SignalRef after;
  SignalRef done;
};

bool run_host_task(abi::hsa_signal_value_t, void* argument) {
  const std::unique_ptr<HostTask> task(static_cast<HostTask*>(argument));
  task->function();
  task->done->complete();
  return false;
}

}  // namespace

Stream::~Stream() {
  if (queue_ != nullptr) --queue_->streams;
}

HardwareQueue* Stream::queue() {
  if (queue_ != nullptr) return queue_;
  auto& queues = gpu_.queues;
  const auto least = std::min_element(queues.begin(), queues.end(),
                                      [](const auto& a, const auto& b) { return a->streams < b->streams; });
  if (queues.size() < kMaxQueues && (least == queues.end() || (*least)->streams > 0)) {
    if (auto made = HardwareQueue::create(*runtime(), gpu_)) {
      queue_ = made.get();
      queues.push_back(std::move(made));
    } else if (least != queues.end()) {
      queue_ = least->get();
    }
  } else {
    queue_ = least->get();
  }
  if (queue_ != nullptr) ++queue_->streams;
  return queue_;
}

bool Stream::idle() const {
  return !dirty_ && (tail_ == nullptr || tail_->done()) &&
         std::all_of(waits_for_.begin(), waits_for_.end(), [](const auto& signal) { return signal->done(); });
}

SignalRef Stream::tail(bool* failed) {
  if (idle()) return nullptr;
  if (!dirty_ && tail_ != nullptr &&
      (waits_for_.empty() || (waits_for_.size() == 1 && waits_for_[0] == tail_))) {
    return tail_;
  }
  SignalRef marker;
  if (mark(&marker) != hipSuccess) *failed = true;
  return marker;
}

void Stream::wait_for(const SignalRef& other) {
  if (other == nullptr || other->done()) return;
  waits_for_.push_back(other);
}

hipError_t Stream::mark(SignalRef* marker) {
  HardwareQueue* q = queue();
  SignalRef signal = make_signal();
  if (q == nullptr || signal == nullptr) return hipErrorOutOfMemory;
  q->barrier(waits_for_, signal);
  waits_for_.clear();
  tail_ = signal;
  dirty_ = false;
  *marker = std::move(signal);
  return hipSuccess;
}

HardwareQueue* Stream::prepare() {
  HardwareQueue* q = queue();
  if (q == nullptr) return nullptr;
  std::erase_if(waits_for_, [](const auto& signal) { return signal->done(); });
  if (!waits_for_.empty()) {
    q->barrier(waits_for_, nullptr);
    dirty_ = true;
    tail_.reset();
  }
  waits_for_.clear();
  return q;
}

void Stream::dispatch(const Dispatch& what) {
  queue_->dispatch(what);
  dirty_ = true;
  tail_.reset();
}

hipError_t Stream::copy(void* dst, const void* src, std::size_t bytes) {
  bool failed = false;
  const SignalRef after = tail(&failed);
  SignalRef done = make_signal();
  if (failed || done == nullptr) return hipErrorOutOfMemory;
  const abi::hsa_signal_t depends = after == nullptr ? abi::hsa_signal_t{} : after->handle();
  if (abi::hsa_amd_memory_async_copy(dst, gpu_.agent, src, gpu_.agent, bytes, after == nullptr ? 0 : 1,
                                     after == nullptr ? nullptr : &depends,
                                     done->handle()) != abi::HSA_STATUS_SUCCESS) {
    return hipErrorInvalidValue;
  }
  if (after != nullptr) {
    // The copy refers to `after` by its handle: keep it from being reused until the copy is done.
    auto* kept = new std::pair<SignalRef, SignalRef>(after, done);
    abi::hsa_amd_signal_async_handler(
        done->handle(), abi::HSA_SIGNAL_CONDITION_LT, 1,
        [](abi::hsa_signal_value_t, void* argument) {
          delete static_cast<std::pair<SignalRef, SignalRef>*>(argument);
          return false;
        },
        kept);
  }
  waits_for_ = {done};
  tail_ = std::move(done);
  dirty_ = false;
  return hipSuccess;
}

hipError_t Stream::host(std::function<void()> function) {
  SignalRef after;
  bool failed = false;
  after = tail(&failed);
  SignalRef done = make_signal();
  if (failed || done == nullptr) return hipErrorOutOfMemory;
  if (after == nullptr) {
    after = make_signal();
    if (after == nullptr) return hipErrorOutOfMemory;
    after->complete();
  }
  auto task = std::make_unique<HostTask>(HostTask{std::move(function), after, done});
  if (abi::hsa_amd_signal_async_handler(after->handle(), abi::HSA_SIGNAL_CONDITION_LT, 1, run_host_task,
                                        task.get()) != abi::HSA_STATUS_SUCCESS) {
    return hipErrorOutOfMemory;
  }
  static_cast<void>(task.release());  // run_host_task owns it
  waits_for_ = {done};
  tail_ = std::move(done);
  dirty_ = false;
  return hipSuccess;
}

Stream* find_stream(hipStream_t handle) {
  Gpu* gpu = current_gpu();
  if (gpu == nullptr) return nullptr;
  // hipStreamPerThread is treated as the null stream, which orders more than it must.
  if (handle == nullptr || handle == hipStreamLegacy || handle == hipStreamPerThread) return gpu->null_stream;
  for (const auto& other : runtime()->gpus) {
    const std::lock_guard lock(other->mutex);
    for (const auto& stream : other->streams) {
      if (stream.get() == reinterpret_cast<Stream*>(handle)) return stream.get();
    }
  }
  return nullptr;
}

hipError_t join_null_stream(Stream& stream) {
  Gpu& gpu = stream.gpu();
  Stream& null_stream = *gpu.null_stream;
  bool failed = false;
  if (&stream == &null_stream) {
    for (std::size_t i = 1; i < gpu.streams.size(); ++i) {
      Stream& other = *gpu.streams[i];
      if (other.blocking() && !other.idle()) stream.wait_for(other.tail(&failed));
    }
  } else if (stream.blocking() && !null_stream.idle()) {
    stream.wait_for(null_stream.tail(&failed));
  }
  return failed ? hipErrorOutOfMemory : hipSuccess;
}

hipError_t synchronize(Stream& stream) {
  SignalRef tail;
  bool failed = false;
  {
    const std::lock_guard lock(stream.gpu().mutex);
    if (const hipError_t error = join_null_stream(stream); error != hipSuccess) return error;
    tail = stream.tail(&failed);
  }
  if (failed) return hipErrorOutOfMemory;
  if (tail != nullptr) tail->wait();
  return hipSuccess;
}

hipError_t synchronize(Gpu& gpu) {
  std::vector<SignalRef> tails;
  bool failed = false;
  {
    const std::lock_guard lock(gpu.mutex);
    for (const auto& stream : gpu.streams) tails.push_back(stream->tail(&failed));
  }
  for (const SignalRef& tail : tails) {
    if (tail != nullptr) tail->wait();
  }
  return failed ? hipErrorOutOfMemory : hipSuccess;
}

}  // namespace kerncap::sim::hip
