// The part of NVIDIA's driver API that kerncap uses, declared anew: nothing of a CUDA toolkit is needed to
// build. Names, values and layouts are cuda.h's; tests/cuda compares them with it where it can be found.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kerncap::abi {

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUkern_st;
struct CUlib_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct CUmemPoolHandle_st;
using CUcontext = CUctx_st*;
using CUmodule = CUmod_st*;
using CUfunction = CUfunc_st*;
using CUkernel = CUkern_st*;
using CUlibrary = CUlib_st*;
using CUstream = CUstream_st*;
using CUevent = CUevent_st*;
using CUgraph = CUgraph_st*;
using CUgraphNode = CUgraphNode_st*;
using CUgraphExec = CUgraphExec_st*;
using CUmemoryPool = CUmemPoolHandle_st*;

enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_LOSSY_QUERY = 402,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
};

enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
};

enum CUfunction_attribute : int {
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
  CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
  CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
};

enum CUpointer_attribute : int {
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
  CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
  CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
  CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
};

enum CUmemorytype : int { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2 };

enum CUstreamCaptureMode : int { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum CUstreamCaptureStatus : int { CU_STREAM_CAPTURE_STATUS_NONE = 0 };

inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DEFAULT = 0;
// Macros there, which would not let these stand beside them under their own names: CU_MEMHOSTALLOC_PORTABLE,
// CU_MEMHOSTREGISTER_PORTABLE and _DEVICEMAP, and the markers CU_LAUNCH_PARAM_* in `extra` of a launch.
inline constexpr unsigned kCudaHostAllocPortable = 1;
inline constexpr unsigned kCudaHostRegisterPortable = 1;
inline constexpr unsigned kCudaHostRegisterDeviceMap = 2;
inline constexpr std::uintptr_t kCudaLaunchParamEnd = 0;
inline constexpr std::uintptr_t kCudaLaunchParamBufferPointer = 1;
inline constexpr std::uintptr_t kCudaLaunchParamBufferSize = 2;

enum CUjit_option : int {
  CU_JIT_INFO_LOG_BUFFER = 3,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

enum CUmemAllocationType : int { CU_MEM_ALLOCATION_TYPE_PINNED = 1 };
enum CUmemLocationType : int { CU_MEM_LOCATION_TYPE_DEVICE = 1, CU_MEM_LOCATION_TYPE_HOST_NUMA = 3 };
enum CUmemAccess_flags : int { CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3 };

struct CUmemLocation {
  CUmemLocationType type;
  int id;
};

struct CUmemAllocationProp {
  CUmemAllocationType type;
  int requestedHandleTypes;
  CUmemLocation location;
  void* win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};

struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
};

enum CUlaunchAttributeID : int {
  CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5,
  CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11,
  CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14,
};

struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[8 - sizeof(CUlaunchAttributeID)];
  union {
    char bytes[64];
    int cooperative;
    struct {
      unsigned x, y, z;
    } clusterDim;
  } value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
};

// name, exported symbol, parameters. What is marked `late` came after the first driver of CUDA 11 and may be
// missing.
#define KERNCAP_CUDA_FUNCTIONS(X)                                                                           \
  X(cuInit, "cuInit", (unsigned flags))                                                                     \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int* version))                                               \
  X(cuGetErrorName, "cuGetErrorName", (CUresult error, const char** text))                                  \
  X(cuGetErrorString, "cuGetErrorString", (CUresult error, const char** text))                              \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                                           \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int* count))                                                     \
  X(cuDeviceGetName, "cuDeviceGetName", (char* name, int bytes, CUdevice device))                           \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int* value, CUdevice_attribute what, CUdevice device))   \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext * context, CUdevice device))           \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext context))                                                \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", (CUcontext * context))                                              \
  X(cuCtxGetDevice, "cuCtxGetDevice", (CUdevice * device))                                                  \
  X(cuCtxSynchronize, "cuCtxSynchronize", ())                                                               \
  X(cuStreamCreate, "cuStreamCreate", (CUstream * stream, unsigned flags))                                  \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream stream))                                               \
  X(cuStreamQuery, "cuStreamQuery", (CUstream stream))                                                      \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream stream))                                          \
  X(cuStreamIsCapturing, "cuStreamIsCapturing", (CUstream stream, CUstreamCaptureStatus * status))          \
  X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (CUstreamCaptureMode * mode))   \
  X(cuEventCreate, "cuEventCreate", (CUevent * event, unsigned flags))                                      \
  X(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream))                                       \
  X(cuEventQuery, "cuEventQuery", (CUevent event))                                                          \
  X(cuEventSynchronize, "cuEventSynchronize", (CUevent event))                                              \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float* milliseconds, CUevent start, CUevent end))            \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                                               \
    (CUmodule * module, const void* image, unsigned count, CUjit_option* options, void** values))           \
  X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction * function, CUmodule module, const char* name)) \
  X(cuModuleGetGlobal, "cuModuleGetGlobal_v2",                                                              \
    (CUdeviceptr * address, std::size_t* bytes, CUmodule module, const char* name))                         \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule module))                                                    \
  X(cuFuncGetAttribute, "cuFuncGetAttribute", (int* value, CUfunction_attribute what, CUfunction function)) \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction function, CUfunction_attribute what, int value))  \
  X(cuFuncGetModule, "cuFuncGetModule", (CUmodule * module, CUfunction function))                           \
  X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr * address, std::size_t bytes))                                \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr address))                                                       \
  X(cuMemHostAlloc, "cuMemHostAlloc", (void** address, std::size_t bytes, unsigned flags))                  \
  X(cuMemFreeHost, "cuMemFreeHost", (void* address))                                                        \
  X(cuMemHostRegister, "cuMemHostRegister_v2", (void* address, std::size_t bytes, unsigned flags))          \
  X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",                                              \
    (CUdeviceptr * address, void* host, unsigned flags))                                                    \
  X(cuMemAddressReserve, "cuMemAddressReserve",                                                             \
    (CUdeviceptr * address, std::size_t bytes, std::size_t alignment, CUdeviceptr wanted,                   \
     unsigned long long flags))                                                                             \
  X(cuMemAddressFree, "cuMemAddressFree", (CUdeviceptr address, std::size_t bytes))                         \
  X(cuMemCreate, "cuMemCreate",                                                                             \
    (CUmemGenericAllocationHandle * handle, std::size_t bytes, const CUmemAllocationProp* properties,       \
     unsigned long long flags))                                                                             \
  X(cuMemMap, "cuMemMap",                                                                                   \
    (CUdeviceptr address, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,       \
     unsigned long long flags))                                                                             \
  X(cuMemSetAccess, "cuMemSetAccess",                                                                       \
    (CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access, std::size_t count))             \
  X(cuMemGetInfo, "cuMemGetInfo_v2", (std::size_t* free, std::size_t* total))                               \
  X(cuMemGetAddressRange, "cuMemGetAddressRange_v2",                                                        \
    (CUdeviceptr * base, std::size_t* bytes, CUdeviceptr address))                                          \
  X(cuPointerGetAttribute, "cuPointerGetAttribute",                                                         \
    (void* value, CUpointer_attribute what, CUdeviceptr address))                                           \
  X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr to, const void* from, std::size_t bytes))                 \
  X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void* to, CUdeviceptr from, std::size_t bytes))                       \
  X(cuMemcpyAsync, "cuMemcpyAsync", (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream)) \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                              \
    (CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream))                                 \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                                              \
    (void* to, CUdeviceptr from, std::size_t bytes, CUstream stream))                                       \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                              \
    (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream))                                 \
  X(cuMemsetD8Async, "cuMemsetD8Async",                                                                     \
    (CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream stream))                              \
  X(cuLaunchKernelEx, "cuLaunchKernelEx",                                                                   \
    (const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra))                   \
  X(cuLaunchKernel, "cuLaunchKernel",                                                                       \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,              \
     unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters, void** extra))

// Of CUDA 12 and later; absent from older drivers.
#define KERNCAP_CUDA_LATER_FUNCTIONS(X)                                                \
  X(cuFuncGetParamInfo, "cuFuncGetParamInfo",                                          \
    (CUfunction function, std::size_t index, std::size_t* offset, std::size_t* bytes)) \
  X(cuKernelGetParamInfo, "cuKernelGetParamInfo",                                      \
    (CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* bytes))     \
  X(cuKernelGetFunction, "cuKernelGetFunction", (CUfunction * function, CUkernel kernel))

struct CudaDriver {
#define KERNCAP_CUDA_MEMBER(name, symbol, parameters) CUresult(*name) parameters = nullptr;
  KERNCAP_CUDA_FUNCTIONS(KERNCAP_CUDA_MEMBER)
  KERNCAP_CUDA_LATER_FUNCTIONS(KERNCAP_CUDA_MEMBER)
#undef KERNCAP_CUDA_MEMBER
};

}  // namespace kerncap::abi
