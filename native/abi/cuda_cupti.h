// The part of CUPTI that kerncap uses, declared anew, with the driver calls' parameter blocks that its
// callbacks hand out (generated_cuda_meta.h). tests/cuda compares all of it with NVIDIA's headers where they
// can be found.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/cuda.h"
#include "abi/cuda_graph.h"

namespace kerncap::abi {

enum CUptiResult : int { CUPTI_SUCCESS = 0, CUPTI_ERROR_MAX_LIMIT_REACHED = 12 };

enum CUpti_CallbackDomain : int { CUPTI_CB_DOMAIN_DRIVER_API = 1, CUPTI_CB_DOMAIN_RESOURCE = 3 };
enum CUpti_ApiCallbackSite : int { CUPTI_API_ENTER = 0, CUPTI_API_EXIT = 1 };
enum CUpti_CallbackIdResource : int {
  CUPTI_CBID_RESOURCE_CONTEXT_CREATED = 1,
  CUPTI_CBID_RESOURCE_MODULE_LOADED = 6,
  CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING = 7,
};

using CUpti_CallbackId = std::uint32_t;
struct CUpti_Subscriber_st;
using CUpti_SubscriberHandle = CUpti_Subscriber_st*;
using CUpti_CallbackFunc = void (*)(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                    const void* data);

struct CUpti_CallbackData {
  CUpti_ApiCallbackSite callbackSite;
  const char* functionName;
  const void* functionParams;
  void* functionReturnValue;
  const char* symbolName;
  CUcontext context;
  std::uint32_t contextUid;
  std::uint64_t* correlationData;
  std::uint32_t correlationId;
};

struct CUpti_ResourceData {
  CUcontext context;
  union {
    CUstream stream;
  } resourceHandle;
  void* resourceDescriptor;
};

struct CUpti_ModuleResourceData {
  std::uint32_t moduleId;
  std::size_t cubinSize;
  const char* pCubin;
};

enum CUpti_ActivityKind : int { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10 };

struct CUpti_Activity {
  CUpti_ActivityKind kind;
};

// What CUpti_ActivityKernel4 and all later versions begin with, as far as it is used; the two fields behind
// `name` are in versions 5 and later (CUDA 11).
struct alignas(8) CUpti_ActivityKernelPrefix {
  CUpti_ActivityKind kind;
  std::uint8_t cache_config[2];
  std::uint16_t registersPerThread;
  std::uint8_t partitioned[8];
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t completed;
  std::uint32_t deviceId;
  std::uint32_t contextId;
  std::uint32_t streamId;
  std::int32_t gridX, gridY, gridZ;
  std::int32_t blockX, blockY, blockZ;
  std::int32_t staticSharedMemory;
  std::int32_t dynamicSharedMemory;
  std::uint32_t localMemoryPerThread;
  std::uint32_t localMemoryTotal;
  std::uint32_t correlationId;
  std::int64_t gridId;
  const char* name;
  std::uint8_t between[32];
  std::uint64_t graphNodeId;
};

using CUpti_BuffersCallbackRequestFunc = void (*)(std::uint8_t** buffer, std::size_t* bytes,
                                                  std::size_t* max_records);
using CUpti_BuffersCallbackCompleteFunc = void (*)(CUcontext context, std::uint32_t stream,
                                                   std::uint8_t* buffer, std::size_t bytes,
                                                   std::size_t valid_bytes);

#define KERNCAP_CUPTI_FUNCTIONS(X)                                                                        \
  X(cuptiSubscribe, (CUpti_SubscriberHandle * subscriber, CUpti_CallbackFunc callback, void* user))       \
  X(cuptiEnableCallback, (std::uint32_t enable, CUpti_SubscriberHandle subscriber,                        \
                          CUpti_CallbackDomain domain, CUpti_CallbackId id))                              \
  X(cuptiActivityEnable, (CUpti_ActivityKind kind))                                                       \
  X(cuptiActivityDisable, (CUpti_ActivityKind kind))                                                      \
  X(cuptiActivityRegisterCallbacks,                                                                       \
    (CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete))               \
  X(cuptiActivityFlushAll, (std::uint32_t flag))                                                          \
  X(cuptiActivityGetNextRecord, (std::uint8_t* buffer, std::size_t valid_bytes, CUpti_Activity** record)) \
  X(cuptiActivityGetNumDroppedRecords, (CUcontext context, std::uint32_t stream, std::size_t* dropped))   \
  X(cuptiGetResultString, (CUptiResult result, const char** text))

struct Cupti {
#define KERNCAP_CUPTI_MEMBER(name, parameters) CUptiResult(*name) parameters = nullptr;
  KERNCAP_CUPTI_FUNCTIONS(KERNCAP_CUPTI_MEMBER)
#undef KERNCAP_CUPTI_MEMBER
};

// Callback ids of the driver API (cupti_driver_cbid.h). Forms that end in _ptsz are called by programs
// compiled for a default stream per thread; their parameters are the same.
enum CUpti_driver_api_trace_cbid : std::uint32_t {
  CUPTI_DRIVER_TRACE_CBID_cuModuleLoad = 18,
  CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData = 19,
  CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx = 20,
  CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary = 21,
  CUPTI_DRIVER_TRACE_CBID_cuModuleUnload = 22,
  CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost = 38,
  CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc = 39,
  CUPTI_DRIVER_TRACE_CBID_cuLaunch = 115,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid = 116,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchGridAsync = 117,
  CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2 = 243,
  CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2 = 244,
  CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2 = 245,
  CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2 = 294,
  CUPTI_DRIVER_TRACE_CBID_cuMemHostRegister = 301,
  CUPTI_DRIVER_TRACE_CBID_cuMemHostUnregister = 302,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel = 307,
  CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle = 329,
  CUPTI_DRIVER_TRACE_CBID_cuIpcCloseMemHandle = 330,
  CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged = 371,
  CUPTI_DRIVER_TRACE_CBID_cuMemHostRegister_v2 = 379,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz = 442,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel = 477,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz = 478,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice = 480,
  CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture = 495,
  CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz = 496,
  CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture = 497,
  CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz = 498,
  CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate = 513,
  CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch = 514,
  CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz = 515,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy = 516,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams = 538,
  CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2 = 539,
  CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz = 540,
  CUPTI_DRIVER_TRACE_CBID_cuMemMap = 551,
  CUPTI_DRIVER_TRACE_CBID_cuMemUnmap = 552,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate = 561,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecMemcpyNodeSetParams = 562,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecMemsetNodeSetParams = 563,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecHostNodeSetParams = 564,
  CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle_v2 = 567,
  CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2 = 578,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecChildGraphNodeSetParams = 586,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecEventRecordNodeSetEvent = 595,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecEventWaitNodeSetEvent = 596,
  CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync = 598,
  CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz = 599,
  CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync = 600,
  CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz = 601,
  CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync = 611,
  CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz = 612,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecExternalSemaphoresSignalNodeSetParams = 624,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecExternalSemaphoresWaitNodeSetParams = 625,
  CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags = 643,
  CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetEnabled = 650,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx = 652,
  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz = 653,
  CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams = 656,
  CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz = 657,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecBatchMemOpNodeSetParams = 672,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams_v2 = 692,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2 = 696,
  CUPTI_DRIVER_TRACE_CBID_cuGraphExecNodeSetParams = 714,
  CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph = 720,
  CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz = 721,
};

struct cuLaunchKernel_params {
  CUfunction f;
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  void** kernelParams;
  void** extra;  // not in cuLaunchCooperativeKernel's
};
struct cuLaunchKernelEx_params {
  const CUlaunchConfig* config;
  CUfunction f;
  void** kernelParams;
  void** extra;
};
struct cuMemAlloc_v2_params {
  CUdeviceptr* dptr;
  std::size_t bytesize;  // also of cuMemAllocManaged, cuMemAllocAsync and cuMemAllocFromPoolAsync
};
struct cuMemAllocPitch_v2_params {
  CUdeviceptr* dptr;
  std::size_t* pPitch;
  std::size_t WidthInBytes;
  std::size_t Height;
};
struct cuMemHostAlloc_params {
  void** pp;
  std::size_t bytesize;  // also of cuMemAllocHost_v2
};
struct cuMemHostRegister_v2_params {
  void* p;
  std::size_t bytesize;
};
struct cuMemFree_v2_params {
  CUdeviceptr dptr;  // also of cuMemFreeAsync, cuMemFreeHost, cuMemHostUnregister, cuIpcCloseMemHandle
};
struct cuMemMap_params {
  CUdeviceptr ptr;
  std::size_t size;
  std::size_t offset;
  CUmemGenericAllocationHandle handle;
};
struct cuMemUnmap_params {
  CUdeviceptr ptr;
  std::size_t size;
};
struct cuIpcOpenMemHandle_v2_params {
  CUdeviceptr* pdptr;
};
struct cuModuleLoadData_params {
  CUmodule* module;  // first in all four ways to load one
};
struct cuModuleUnload_params {
  CUmodule hmod;
};
struct cuGraphInstantiateWithFlags_params {
  CUgraphExec* phGraphExec;  // these two are first in all ways to instantiate one
  CUgraph hGraph;
  unsigned long long flags;
};
struct cuGraphInstantiateWithParams_params {
  CUgraphExec* phGraphExec;
  CUgraph hGraph;
  CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams;
};
struct cuGraphExecUpdate_params {
  CUgraphExec hGraphExec;  // also of cuGraphExecUpdate_v2
  CUgraph hGraph;
};
struct cuGraphExecKernelNodeSetParams_params {
  CUgraphExec hGraphExec;  // also of all others that change one node
  CUgraphNode hNode;
  const void* nodeParams;  // an event in those of event nodes
};
struct cuGraphExecChildGraphNodeSetParams_params {
  CUgraphExec hGraphExec;
  CUgraphNode hNode;
  CUgraph childGraph;
};
struct cuGraphNodeSetEnabled_params {
  CUgraphExec hGraphExec;
  CUgraphNode hNode;
  unsigned isEnabled;
};
struct cuGraphExecDestroy_params {
  CUgraphExec hGraphExec;
};
struct cuGraphLaunch_ptsz_params {
  CUgraphExec hGraphExec;  // also of cuGraphLaunch
  CUstream hStream;
};

}  // namespace kerncap::abi
