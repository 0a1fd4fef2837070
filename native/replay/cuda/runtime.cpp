#include "replay/cuda/runtime.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "abi/cuda_load.h"
#include "replay/error.h"

namespace kerncap::replay {

using namespace abi;  // NOLINT: the ABI's own names

Runtime::Runtime(const std::string& wanted) {
  library_ = ::dlopen(wanted.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library_ == nullptr) {
    const char* const why = ::dlerror();
    throw ReplayError(ErrorClass::device, "cannot load NVIDIA's driver " + wanted + ": " +
                                              (why != nullptr ? why : "unknown reason"));
  }
  link_map* map = nullptr;
  path = ::dlinfo(library_, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr ? map->l_name : wanted;
  if (const char* missing = load_functions(library_, cuda)) {
    throw ReplayError(ErrorClass::device, path + " has no " + missing + "; CUDA 11.8 or later is needed");
  }
  check(cuda.cuInit(0), "starting NVIDIA's driver " + path);
  int count = 0;
  check(cuda.cuDeviceGetCount(&count), "counting the GPUs");
  for (int i = 0; i < count; ++i) {
    Agent agent;
    char product[128] = {};
    check(cuda.cuDeviceGet(&agent.handle, i), "opening a GPU");
    cuda.cuDeviceGetName(product, sizeof product, agent.handle);
    const auto number = [&](CUdevice_attribute what) {
      int value = 0;
      cuda.cuDeviceGetAttribute(&value, what, agent.handle);
      return static_cast<std::uint32_t>(value);
    };
    agent.product = product;
    agent.name = "sm_" + std::to_string(number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                                        number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    agent.isa = "nvptx64-nvidia-cuda--" + agent.name;
    agent.lds_bytes = number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    agent.max_workgroup = number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    agent.cache_bytes = number(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    gpus_.push_back(std::move(agent));
  }
}

Runtime::~Runtime() = default;  // the process ends

void Runtime::activate(const Agent& agent) {
  check(cuda.cuDevicePrimaryCtxRetain(&context, agent.handle), "opening " + agent.product);
  check(cuda.cuCtxSetCurrent(context), "using " + agent.product);
  check(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "creating a stream");
}

std::string Runtime::status_text(CUresult result) const {
  const char *name = nullptr, *text = nullptr;
  if (cuda.cuGetErrorName != nullptr) cuda.cuGetErrorName(result, &name);
  if (cuda.cuGetErrorString != nullptr) cuda.cuGetErrorString(result, &text);
  std::string all = name != nullptr ? name : "CUDA error " + std::to_string(result);
  if (text != nullptr) all.append(" (").append(text).append(")");
  return all;
}

void Runtime::check(CUresult result, const std::string& doing) const {
  if (result == CUDA_SUCCESS) return;
  throw ReplayError(ErrorClass::device, doing + " failed: " + status_text(result));
}

std::uint64_t Runtime::allocate_on_device(const Agent&, std::uint64_t bytes) const {
  CUdeviceptr address = 0;
  return cuda.cuMemAlloc(&address, bytes) == CUDA_SUCCESS ? address : 0;
}

void Runtime::free_on_device(std::uint64_t address) const {
  finish_copies();
  cuda.cuMemFree(address);
}

void Runtime::copy_on_device(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) const {
  copying_.store(true, std::memory_order_release);
  check(cuda.cuMemcpyAsync(to, from, bytes, stream), "copying on the device");
}

void* Runtime::kernarg_memory(const Agent&, std::uint64_t bytes) const {
  void* memory = std::calloc(1, bytes);
  if (memory == nullptr) throw ReplayError(ErrorClass::device, "no memory for kernel parameters");
  return memory;
}

Stage* Runtime::take_stage() const {
  thread_local CUcontext current = nullptr;
  if (current != context) {
    check(cuda.cuCtxSetCurrent(context), "using the GPU from another thread");
    current = context;
  }
  const std::size_t wanted =
      2 * std::size_t{std::min(16u, std::max(1u, std::thread::hardware_concurrency()))};
  Stage* stage = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (stages_.size() >= wanted && !free_stages_.empty()) {
      stage = free_stages_.front();
      free_stages_.pop_front();
    }
  }
  if (stage != nullptr) {
    const CUresult done = cuda.cuStreamSynchronize(stage->stream);
    if (done != CUDA_SUCCESS) throw ReplayError(ErrorClass::fault, status_text(done));
    return stage;
  }
  auto made = std::make_unique<Stage>();
  void* data = nullptr;
  check(cuda.cuMemHostAlloc(&data, kStageBytes, kCudaHostAllocPortable), "allocating pinned memory");
  made->data = static_cast<unsigned char*>(data);
  check(cuda.cuStreamCreate(&made->stream, CU_STREAM_NON_BLOCKING), "creating a stream");
  const std::lock_guard lock(mutex_);
  stages_.push_back(std::move(made));
  return stages_.back().get();
}

void Runtime::give_back(Stage* stage, bool busy) const {
  if (busy) {
    sending_.store(true, std::memory_order_release);
    copying_.store(true, std::memory_order_release);
  }
  const std::lock_guard lock(mutex_);
  free_stages_.push_back(stage);
}

void Runtime::finish_copies() const {
  if (!copying_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(finishing_);
  if (!copying_.load(std::memory_order_acquire)) return;
  check(cuda.cuCtxSetCurrent(context), "using the GPU");
  check(cuda.cuCtxSynchronize(), "waiting for copies");
  sending_.store(false, std::memory_order_release);
  copying_.store(false, std::memory_order_release);
}

void Runtime::finish_stages() const {
  if (sending_.load(std::memory_order_acquire)) finish_copies();
}

}  // namespace kerncap::replay
