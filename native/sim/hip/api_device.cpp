// Devices: how many there are, which one a thread uses, and what they are like.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "abi/hsa_functions.h"
#include "sim/hip/error.h"
#include "sim/hip/runtime.h"
#include "sim/hip/stream.h"

using namespace kerncap::sim::hip;
namespace abi = kerncap::abi;

namespace {

Gpu* find_gpu(int device) {
  Runtime* rt = runtime();
  if (rt == nullptr || device < 0 || static_cast<std::size_t>(device) >= rt->gpus.size()) return nullptr;
  return rt->gpus[static_cast<std::size_t>(device)].get();
}

template <typename T>
T info(const Gpu& gpu, abi::hsa_agent_info_t what, T otherwise) {
  T value = otherwise;
  return abi::hsa_agent_get_info(gpu.agent, what, &value) == abi::HSA_STATUS_SUCCESS ? value : otherwise;
}

// "gfx90a" is 9.0, "gfx942" 9.4, "gfx1100" 11.0: minor and stepping are one hexadecimal digit each.
void compute_capability(const std::string& arch, int* major, int* minor) {
  *major = *minor = 0;
  if (!arch.starts_with("gfx") || arch.size() < 6) return;
  *major = std::atoi(arch.substr(3, arch.size() - 5).c_str());
  *minor = static_cast<int>(std::strtol(arch.substr(arch.size() - 2, 1).c_str(), nullptr, 16));
}

constexpr int kMaxBlock = 1024;

void fill(const Gpu& gpu, hipDeviceProp_t* p) {
  std::memset(p, 0, sizeof(*p));
  std::snprintf(p->name, sizeof(p->name), "%s", gpu.product.c_str());
  // The ISA's name has the target features that the arch name lacks:
  // "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-".
  abi::hsa_isa_t isa = info(gpu, abi::HSA_AGENT_INFO_ISA, abi::hsa_isa_t{});
  char isa_name[128] = {};
  const char* target = nullptr;
  if (isa.handle != 0 &&
      abi::hsa_isa_get_info_alt(isa, abi::HSA_ISA_INFO_NAME, isa_name) == abi::HSA_STATUS_SUCCESS) {
    target = std::strstr(isa_name, "--");
  }
  std::snprintf(p->gcnArchName, sizeof(p->gcnArchName), "%s",
                target == nullptr ? gpu.arch.c_str() : target + 2);
  abi::hsa_agent_get_info(gpu.agent, abi::HSA_AMD_AGENT_INFO_UUID, p->uuid.bytes);
  p->totalGlobalMem = gpu.memory_bytes;
  p->sharedMemPerBlock = p->maxSharedMemoryPerMultiProcessor = p->sharedMemPerMultiprocessor = gpu.lds_bytes;
  p->sharedMemPerBlockOptin = gpu.lds_bytes;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->warpSize = static_cast<int>(gpu.wavefront);
  p->memPitch = 0x7fffffff;
  p->maxThreadsPerBlock = kMaxBlock;
  std::fill_n(p->maxThreadsDim, 3, kMaxBlock);
  p->maxGridSize[0] = 0x7fffffff;
  p->maxGridSize[1] = p->maxGridSize[2] = 65536;
  p->clockRate =
      static_cast<int>(info<std::uint32_t>(gpu, abi::HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY, 0)) * 1000;
  p->memoryClockRate =
      static_cast<int>(info<std::uint32_t>(gpu, abi::HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY, 0)) * 1000;
  p->memoryBusWidth = static_cast<int>(info<std::uint32_t>(gpu, abi::HSA_AMD_AGENT_INFO_MEMORY_WIDTH, 0));
  std::uint32_t caches[4] = {};
  abi::hsa_agent_get_info(gpu.agent, abi::HSA_AGENT_INFO_CACHE_SIZE, caches);
  p->l2CacheSize = static_cast<int>(caches[1]);
  p->totalConstMem = gpu.memory_bytes;
  compute_capability(gpu.arch, &p->major, &p->minor);
  p->textureAlignment = 256;
  p->texturePitchAlignment = 256;
  p->multiProcessorCount = static_cast<int>(gpu.compute_units);
  p->maxThreadsPerMultiProcessor = static_cast<int>(
      info<std::uint32_t>(gpu, abi::HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU, 32) * gpu.wavefront);
  p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = p->managedMemory = 1;
  p->concurrentManagedAccess = p->hostRegisterSupported = p->memoryPoolsSupported = 1;
  p->streamPrioritiesSupported = p->isLargeBar = 1;
  const auto bdf = info<std::uint32_t>(gpu, abi::HSA_AMD_AGENT_INFO_BDFID, 0);
  p->pciBusID = static_cast<int>(bdf >> 8);
  p->pciDeviceID = static_cast<int>(bdf >> 3 & 0x1f);
  p->pciDomainID = static_cast<int>(info<std::uint32_t>(gpu, abi::HSA_AMD_AGENT_INFO_DOMAIN, 0));
  p->asyncEngineCount = static_cast<int>(info<std::uint32_t>(gpu, abi::HSA_AMD_AGENT_INFO_NUM_SDMA_ENG, 1));
  p->clockInstructionRate = static_cast<int>(runtime()->clock_hz / 1000);
  p->arch.features = 0x1ffff;
}

bool attribute_value(const hipDeviceProp_t& p, hipDeviceAttribute_t attribute, int* value) {
  switch (attribute) {
    case hipDeviceAttributeClockRate:
      *value = p.clockRate;
      return true;
    case hipDeviceAttributeL2CacheSize:
      *value = p.l2CacheSize;
      return true;
    case hipDeviceAttributeComputeCapabilityMajor:
      *value = p.major;
      return true;
    case hipDeviceAttributeComputeCapabilityMinor:
      *value = p.minor;
      return true;
    case hipDeviceAttributeMaxBlockDimX:
    case hipDeviceAttributeMaxBlockDimY:
    case hipDeviceAttributeMaxBlockDimZ:
      *value = p.maxThreadsDim[attribute - hipDeviceAttributeMaxBlockDimX];
      return true;
    case hipDeviceAttributeMaxGridDimX:
    case hipDeviceAttributeMaxGridDimY:
    case hipDeviceAttributeMaxGridDimZ:
      *value = p.maxGridSize[attribute - hipDeviceAttributeMaxGridDimX];
      return true;
    case hipDeviceAttributeMaxThreadsPerBlock:
      *value = p.maxThreadsPerBlock;
      return true;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor:
      *value = p.maxThreadsPerMultiProcessor;
      return true;
    case hipDeviceAttributeMultiprocessorCount:
      *value = p.multiProcessorCount;
      return true;
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
      *value = static_cast<int>(p.sharedMemPerBlock);
      return true;
    case hipDeviceAttributeWarpSize:
      *value = p.warpSize;
      return true;
    case hipDeviceAttributeWallClockRate:
      *value = p.clockInstructionRate;
      return true;
    case hipDeviceAttributeCanMapHostMemory:
    case hipDeviceAttributeConcurrentKernels:
    case hipDeviceAttributeManagedMemory:
    case hipDeviceAttributeUnifiedAddressing:
    case hipDeviceAttributeMemoryPoolsSupported:
    case hipDeviceAttributeHostRegisterSupported:
      *value = 1;
      return true;
    case hipDeviceAttributeCooperativeLaunch:
    case hipDeviceAttributeIntegrated:
    case hipDeviceAttributeVirtualMemoryManagementSupported:
      *value = 0;
      return true;
  }
  return false;
}

}  // namespace

hipError_t hipInit(unsigned int flags) {
  if (flags != 0) return record(hipErrorInvalidValue);
  return record(runtime() == nullptr ? hipErrorNoDevice : hipSuccess);
}

hipError_t hipDriverGetVersion(int* version) { return hipRuntimeGetVersion(version); }

hipError_t hipRuntimeGetVersion(int* version) {
  if (version == nullptr) return record(hipErrorInvalidValue);
  *version = HIP_VERSION;
  return hipSuccess;
}

hipError_t hipGetDeviceCount(int* count) {
  if (count == nullptr) return record(hipErrorInvalidValue);
  *count = runtime() == nullptr ? 0 : static_cast<int>(runtime()->gpus.size());
  return record(*count == 0 ? hipErrorNoDevice : hipSuccess);
}

hipError_t hipSetDevice(int device) {
  return record(set_current_device(device) ? hipSuccess : hipErrorInvalidDevice);
}

hipError_t hipGetDevice(int* device) {
  if (device == nullptr) return record(hipErrorInvalidValue);
  if (runtime() == nullptr) return record(hipErrorNoDevice);
  *device = current_device();
  return hipSuccess;
}

hipError_t hipDeviceGet(hipDevice_t* device, int ordinal) {
  if (device == nullptr) return record(hipErrorInvalidValue);
  if (find_gpu(ordinal) == nullptr) return record(hipErrorInvalidDevice);
  *device = ordinal;
  return hipSuccess;
}

hipError_t hipDeviceGetName(char* name, int length, hipDevice_t device) {
  if (name == nullptr || length <= 0) return record(hipErrorInvalidValue);
  const Gpu* gpu = find_gpu(device);
  if (gpu == nullptr) return record(hipErrorInvalidDevice);
  std::snprintf(name, static_cast<std::size_t>(length), "%s", gpu->product.c_str());
  return hipSuccess;
}

hipError_t hipDeviceTotalMem(size_t* bytes, hipDevice_t device) {
  const Gpu* gpu = find_gpu(device);
  if (gpu == nullptr) return record(hipErrorInvalidDevice);
  if (bytes == nullptr) return record(hipErrorInvalidValue);
  *bytes = gpu->memory_bytes;
  return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  if (value == nullptr) return record(hipErrorInvalidValue);
  const Gpu* gpu = find_gpu(device);
  if (gpu == nullptr) return record(hipErrorInvalidDevice);
  hipDeviceProp_t properties;
  fill(*gpu, &properties);
  return record(attribute_value(properties, attribute, value) ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t* properties, int device) {
  if (properties == nullptr) return record(hipErrorInvalidValue);
  const Gpu* gpu = find_gpu(device);
  if (gpu == nullptr) return record(hipErrorInvalidDevice);
  fill(*gpu, properties);
  return hipSuccess;
}

hipError_t hipDeviceSynchronize() {
  Gpu* gpu = current_gpu();
  return record(gpu == nullptr ? hipErrorNoDevice : synchronize(*gpu));
}

hipError_t hipDeviceReset() { return hipDeviceSynchronize(); }

hipError_t hipSetDeviceFlags(unsigned int) { return hipSuccess; }

// One context a device, the device's own: what HIP calls the primary context.
hipError_t hipCtxCreate(hipCtx_t* context, unsigned int, hipDevice_t device) {
  if (context == nullptr) return record(hipErrorInvalidValue);
  Gpu* gpu = find_gpu(device);
  if (gpu == nullptr) return record(hipErrorInvalidDevice);
  set_current_device(device);
  *context = reinterpret_cast<hipCtx_t>(gpu);
  return hipSuccess;
}

hipError_t hipCtxDestroy(hipCtx_t context) {
  return record(context == nullptr ? hipErrorInvalidValue : hipSuccess);
}

hipError_t hipCtxSetCurrent(hipCtx_t context) {
  Runtime* rt = runtime();
  if (rt == nullptr) return record(hipErrorNoDevice);
  for (const auto& gpu : rt->gpus) {
    if (reinterpret_cast<hipCtx_t>(gpu.get()) == context) {
      set_current_device(gpu->ordinal);
      return hipSuccess;
    }
  }
  return record(hipErrorInvalidContext);
}

hipError_t hipCtxSynchronize() { return hipDeviceSynchronize(); }
