// Memory: device, host, registered, managed and stream-ordered allocations.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <list>

#include "abi/hsa_functions.h"
#include "sim/hip/allocations.h"
#include "sim/hip/error.h"
#include "sim/hip/runtime.h"
#include "sim/hip/stream.h"

using namespace kerncap::sim::hip;
namespace abi = kerncap::abi;
using Kind = Allocation::Kind;

namespace {

hipError_t allocate_device(Gpu& gpu, abi::hsa_amd_memory_pool_t pool, std::size_t bytes, Kind kind,
                           void** pointer) {
  const abi::hsa_status_t status = abi::hsa_amd_memory_pool_allocate(pool, bytes, 0, pointer);
  if (status != abi::HSA_STATUS_SUCCESS) {
    *pointer = nullptr;
    return hipErrorOutOfMemory;
  }
  allocations().add(
      {.kind = kind, .base = *pointer, .device_base = *pointer, .bytes = bytes, .device = gpu.ordinal});
  return hipSuccess;
}

hipError_t allocate_host(Gpu& gpu, std::size_t bytes, unsigned flags, Kind kind, void** pointer) {
  const auto agents = runtime()->gpu_agents();
  if (abi::hsa_amd_memory_pool_allocate(runtime()->host_fine, bytes, 0, pointer) != abi::HSA_STATUS_SUCCESS) {
    *pointer = nullptr;
    return hipErrorOutOfMemory;
  }
  abi::hsa_amd_agents_allow_access(static_cast<std::uint32_t>(agents.size()), agents.data(), nullptr,
                                   *pointer);
  allocations().add({.kind = kind,
                     .base = *pointer,
                     .device_base = *pointer,
                     .bytes = bytes,
                     .device = gpu.ordinal,
                     .flags = flags});
  return hipSuccess;
}

// Managed memory is the program's own mapping, which the runtime is told of.
hipError_t allocate_managed(Gpu& gpu, std::size_t bytes, unsigned flags, void** pointer) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t mapped = (bytes + page - 1) / page * page;
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return hipErrorOutOfMemory;
  abi::hsa_amd_svm_attribute_pair_t attributes[] = {
      {abi::HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG, abi::HSA_AMD_SVM_GLOBAL_FLAG_FINE_GRAINED},
      {abi::HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE, gpu.agent.handle}};
  if (abi::hsa_amd_svm_attributes_set(memory, mapped, attributes, std::size(attributes)) !=
      abi::HSA_STATUS_SUCCESS) {
    munmap(memory, mapped);
    return allocate_host(gpu, bytes, flags, Kind::managed, pointer);
  }
  *pointer = memory;
  allocations().add({.kind = Kind::managed,
                     .base = memory,
                     .device_base = memory,
                     .bytes = bytes,
                     .device = gpu.ordinal,
                     .flags = flags,
                     .mapped = mapped});
  return hipSuccess;
}

// hipFreeAsync's memory, kept until what was submitted before is done, and given out again in the same
// stream.
struct FreedBlock {
  Allocation allocation;
  hipStream_t stream;
  SignalRef after;
};

struct AsyncPool {
  std::mutex mutex;
  std::list<FreedBlock> freed;
};

AsyncPool& async_pool() {
  static auto* instance = new AsyncPool;
  return *instance;
}

hipError_t release(const Allocation& allocation) {
  if (allocation.mapped != 0) {
    munmap(allocation.base, allocation.mapped);
    return hipSuccess;
  }
  return abi::hsa_amd_memory_pool_free(allocation.base) == abi::HSA_STATUS_SUCCESS ? hipSuccess
                                                                                   : hipErrorInvalidValue;
}

void release_freed() {
  AsyncPool& pool = async_pool();
  const std::lock_guard lock(pool.mutex);
  for (const FreedBlock& block : pool.freed) {
    if (block.after != nullptr) block.after->wait();
    release(block.allocation);
  }
  pool.freed.clear();
}

hipError_t free_kind(void* pointer, bool host) {
  if (pointer == nullptr) return hipSuccess;
  Gpu* gpu = current_gpu();
  if (gpu == nullptr) return hipErrorNoDevice;
  const auto found = allocations().find(pointer);
  const bool suits =
      found && found->base == pointer &&
      (host ? found->kind == Kind::host
            : found->kind == Kind::device || found->kind == Kind::managed || found->kind == Kind::async);
  if (!suits) return hipErrorInvalidValue;
  for (const auto& device : runtime()->gpus) {
    if (const hipError_t error = synchronize(*device); error != hipSuccess) return error;
  }
  release_freed();
  const auto taken = allocations().take(pointer);
  return taken ? release(*taken) : hipErrorInvalidValue;
}

}  // namespace

hipError_t hipMalloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return record(hipErrorInvalidValue);
  *pointer = nullptr;
  Gpu* gpu = current_gpu();
  if (gpu == nullptr) return record(hipErrorNoDevice);
  if (bytes == 0) return hipSuccess;
  return record(allocate_device(*gpu, gpu->coarse, bytes, Kind::device, pointer));
}

hipError_t hipExtMallocWithFlags(void** pointer, size_t bytes, unsigned int flags) {
  if (flags == 0) return hipMalloc(pointer, bytes);
  if (pointer == nullptr || flags != hipDeviceMallocFinegrained) return record(hipErrorInvalidValue);
  *pointer = nullptr;
  Gpu* gpu = current_gpu();
  if (gpu == nullptr) return record(hipErrorNoDevice);
  if (bytes == 0) return hipSuccess;
  if (gpu->fine.handle == 0) return record(hipErrorNotSupported);
  return record(allocate_device(*gpu, gpu->fine, bytes, Kind::device, pointer));
}

hipError_t hipFree(void* pointer) { return record(free_kind(pointer, false)); }

hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned int flags) {
  if (pointer == nullptr) return record(hipErrorInvalidValue);
  *pointer = nullptr;
  Gpu* gpu = current_gpu();
  if (gpu == nullptr) return record(hipErrorNoDevice);
  if (bytes == 0) return hipSuccess;
  return record(allocate_host(*gpu, bytes, flags, Kind::host, pointer));
}

hipError_t hipHostFree(void* pointer) { return record(free_kind(pointer, true)); }

hipError_t hipHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned int) {
  if (device_pointer == nullptr) return record(hipErrorInvalidValue);
  const auto found = allocations().find(host_pointer);
  if (!found || (found->kind != Kind::host && found->kind != Kind::registered))
    return record(hipErrorInvalidValue);
  *device_pointer = static_cast<char*>(found->device_base) +
                    (static_cast<char*>(host_pointer) - static_cast<char*>(found->base));
  return hipSuccess;
}

hipError_t hipHostRegister(void* host_pointer, size_t bytes, unsigned int flags) {
  if (host_pointer == nullptr || bytes == 0) return record(hipErrorInvalidValue);
  Gpu* gpu = current_gpu();
  if (gpu == nullptr) return record(hipErrorNoDevice);
  if (allocations().find(host_pointer)) return record(hipErrorHostMemoryAlreadyRegistered);
  auto agents = runtime()->gpu_agents();
  void* device_pointer = nullptr;
  if (abi::hsa_amd_memory_lock_to_pool(host_pointer, bytes, agents.data(), static_cast<int>(agents.size()),
                                       runtime()->host_fine, 0, &device_pointer) != abi::HSA_STATUS_SUCCESS) {
    return record(hipErrorInvalidValue);
  }
  allocations().add({.kind = Kind::registered,
                     .base = host_pointer,
                     .device_base = device_pointer,
                     .bytes = bytes,
                     .device = gpu->ordinal,
                     .flags = flags});
  return hipSuccess;
}

hipError_t hipHostUnregister(void* host_pointer) {
  Gpu* gpu = current_gpu();
  if (gpu == nullptr) return record(hipErrorNoDevice);
  if (const hipError_t error = synchronize(*gpu); error != hipSuccess) return record(error);
  if (!allocations().take(host_pointer, Kind::registered)) return record(hipErrorHostMemoryNotRegistered);
  abi::hsa_amd_memory_unlock(host_pointer);
  return hipSuccess;
}

hipError_t hipMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  if (pointer == nullptr || bytes == 0) return record(hipErrorInvalidValue);
  *pointer = nullptr;
  Gpu* gpu = current_gpu();
  if (gpu == nullptr) return record(hipErrorNoDevice);
  return record(allocate_managed(*gpu, bytes, flags, pointer));
}

hipError_t hipMallocAsync(void** pointer, size_t bytes, hipStream_t stream) {
  if (pointer == nullptr) return record(hipErrorInvalidValue);
  *pointer = nullptr;
  const Stream* where = find_stream(stream);
  if (where == nullptr) return record(hipErrorInvalidHandle);
  if (bytes == 0) return hipSuccess;
  {
    AsyncPool& pool = async_pool();
    const std::lock_guard lock(pool.mutex);
    for (auto at = pool.freed.begin(); at != pool.freed.end(); ++at) {
      const bool free = at->stream == stream || at->after == nullptr || at->after->done();
      if (!free || at->allocation.bytes != bytes || at->allocation.device != where->gpu().ordinal) continue;
      allocations().add(at->allocation);
      *pointer = at->allocation.base;
      pool.freed.erase(at);
      return hipSuccess;
    }
  }
  return record(allocate_device(where->gpu(), where->gpu().coarse, bytes, Kind::async, pointer));
}

hipError_t hipFreeAsync(void* pointer, hipStream_t stream) {
  if (pointer == nullptr) return hipSuccess;
  Stream* where = find_stream(stream);
  if (where == nullptr) return record(hipErrorInvalidHandle);
  SignalRef after;
  bool failed = false;
  {
    const std::lock_guard lock(where->gpu().mutex);
    after = where->tail(&failed);
  }
  if (failed) return record(hipErrorOutOfMemory);
  const auto taken = allocations().take(pointer, Kind::async);
  if (!taken) return hipFree(pointer);
  AsyncPool& pool = async_pool();
  const std::lock_guard lock(pool.mutex);
  pool.freed.push_back({*taken, stream, after});
  return hipSuccess;
}

hipError_t hipMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (pitch == nullptr) return record(hipErrorInvalidValue);
  *pitch = (width + 255) & ~std::size_t{255};
  return hipMalloc(pointer, *pitch * height);
}

hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const Gpu* gpu = current_gpu();
  if (gpu == nullptr) return record(hipErrorNoDevice);
  std::uint64_t available = gpu->memory_bytes;
  abi::hsa_agent_get_info(gpu->agent, abi::HSA_AMD_AGENT_INFO_MEMORY_AVAIL, &available);
  if (free_bytes != nullptr) *free_bytes = available;
  if (total_bytes != nullptr) *total_bytes = gpu->memory_bytes;
  return hipSuccess;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer) {
  if (attributes == nullptr || pointer == nullptr) return record(hipErrorInvalidValue);
  *attributes = {};
  const auto found = allocations().find(pointer);
  if (!found) {
    attributes->type = hipMemoryTypeUnregistered;
    attributes->device = -2;
    return hipSuccess;
  }
  const auto offset = static_cast<const char*>(pointer) - static_cast<const char*>(found->base);
  const bool host = found->kind == Kind::host || found->kind == Kind::registered;
  const bool managed = found->kind == Kind::managed;
  attributes->type = host ? hipMemoryTypeHost : managed ? hipMemoryTypeManaged : hipMemoryTypeDevice;
  attributes->device = found->device;
  attributes->devicePointer = static_cast<char*>(found->device_base) + offset;
  attributes->hostPointer = host || managed ? static_cast<char*>(found->base) + offset : nullptr;
  attributes->isManaged = managed ? 1 : 0;
  attributes->allocationFlags = found->flags;
  return hipSuccess;
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, size_t* bytes, hipDeviceptr_t pointer) {
  const auto found = allocations().find(pointer);
  if (!found) return record(hipErrorNotFound);
  if (base != nullptr) *base = found->base;
  if (bytes != nullptr) *bytes = found->bytes;
  return hipSuccess;
}
