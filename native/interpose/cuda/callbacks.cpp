// What CUPTI tells of the program's driver calls. Anything here runs in the program's threads, on every
// launch.
#include <algorithm>
#include <mutex>
#include <span>
#include <utility>

#include "interpose/cuda/capture.h"
#include "interpose/cuda/driver.h"
#include "interpose/cuda/graph_callbacks.h"
#include "interpose/cuda/hooked_launches.h"
#include "interpose/cuda/process.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names
using snapshot::RegionKind;

namespace {

CUpti_SubscriberHandle subscriber = nullptr;

// The launch that this thread is in, between its two callbacks.
struct InLaunch {
  Capture* capture = nullptr;
  bool counted = false;
};
thread_local InLaunch in_launch;

constexpr CUpti_CallbackId kLaunches[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                          CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                                          CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                          CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
                                          CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                                          CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz};

// Of these nothing is asked but whether there are any: their records count them.
constexpr CUpti_CallbackId kOldLaunches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunch, CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchGridAsync, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice};

// Of these a stream begins to be recorded into a graph.
constexpr CUpti_CallbackId kRecordings[] = {CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture,
                                            CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz,
                                            CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2,
                                            CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz,
                                            CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph,
                                            CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz};

constexpr CUpti_CallbackId kOthers[] = {CUPTI_DRIVER_TRACE_CBID_cuModuleLoad,
                                        CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData,
                                        CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx,
                                        CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemHostRegister,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemHostRegister_v2,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemHostUnregister,
                                        CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle,
                                        CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle_v2,
                                        CUPTI_DRIVER_TRACE_CBID_cuIpcCloseMemHandle,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged,
                                        CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture,
                                        CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemMap,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemUnmap,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync,
                                        CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz};

// Ranges of callback ids of everything that copies or fills memory, in all versions of the calls.
constexpr std::pair<CUpti_CallbackId, CUpti_CallbackId> kCopies[] = {
    {276, 293}, {305, 306}, {249, 254}, {216, 227}, {318, 321}, {397, 433}, {776, 779}, {796, 799}};

bool is_launch(CUpti_CallbackId id) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
      return true;
    default:
      return false;
  }
}

bool is_old_launch(CUpti_CallbackId id) {
  return std::find(std::begin(kOldLaunches), std::end(kOldLaunches), id) != std::end(kOldLaunches);
}

bool begins_recording(CUpti_CallbackId id) {
  return std::find(std::begin(kRecordings), std::end(kRecordings), id) != std::end(kRecordings);
}

bool is_per_thread(CUpti_CallbackId id) {
  return id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz ||
         id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz ||
         id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz;
}

void launch_begins(Process& process, CUpti_CallbackId id, const CUpti_CallbackData& data) {
  if (process.captures.is_active()) process.captures.wait_while_active();
  process.captures.poll();
  Kernel* kernel = nullptr;
  std::uint64_t nth = 0;
  if (const HookedLaunch& hooked = hooked_launch(); hooked.inside) {
    if (hooked.kernel == nullptr) return;
    kernel = hooked.kernel, nth = hooked.nth;
    process.activity.launched(data.correlationId, *kernel, nth);
    in_launch.counted = true;
    if (!process.captures.armed()) return;
  }
  Launch launch = read_launch(id, data, process.captures.armed());
  if (kernel == nullptr) {
    if (process.is_recorded(launch.stream, is_per_thread(id))) return;
    const char* const symbol = data.symbolName != nullptr ? data.symbolName : "(kernel without a name)";
    kernel = process.kernels.find(launch.function, launch.context, symbol);
    nth = process.count(*kernel, launch);
    process.activity.launched(launch.correlation, *kernel, nth);
    in_launch.counted = true;
  }
  if (!process.captures.armed()) return;
  Capture* capture = process.captures.claim(launch, *kernel, nth);
  if (capture == nullptr) return;
  const OwnCalls own;
  capture->before();
  in_launch.capture = capture;
}

void launch_ends(Process& process, const CUpti_CallbackData& data) {
  const InLaunch launch = std::exchange(in_launch, {});
  const CUresult result = data.functionReturnValue != nullptr
                              ? *static_cast<const CUresult*>(data.functionReturnValue)
                              : CUDA_SUCCESS;
  if (launch.counted && result != CUDA_SUCCESS) process.activity.withdrawn(data.correlationId);
  if (launch.capture == nullptr) return;
  const OwnCalls own;
  launch.capture->after(result);
}

void old_launch(Process& process, const CUpti_CallbackData& data) {
  if (!launches_are_hooked()) return;
  if (data.callbackSite == CUPTI_API_ENTER) {
    process.sampling.hold(Sampling::kForUncounted, true);
    process.activity.uncounted(data.correlationId);
  } else if (data.functionReturnValue != nullptr &&
             *static_cast<const CUresult*>(data.functionReturnValue) != CUDA_SUCCESS) {
    process.activity.withdrawn(data.correlationId);
  }
}

std::uint32_t current_device() {
  CUdevice device = 0;
  const OwnCalls own;
  driver().cuCtxGetDevice(&device);
  return static_cast<std::uint32_t>(device);
}

template <typename Params>
const Params& params(const CUpti_CallbackData& data) {
  return *static_cast<const Params*>(data.functionParams);
}

// What frees or takes over memory is looked at before it happens, what makes some, after.
void call_begins(Process& process, CUpti_CallbackId id, const CUpti_CallbackData& data) {
  process.captures.wait_while_active();
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoad:
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData:
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx:
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary:
      Kernels::begin_loading();
      break;
    case CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost:
    case CUPTI_DRIVER_TRACE_CBID_cuMemHostUnregister:
    case CUPTI_DRIVER_TRACE_CBID_cuIpcCloseMemHandle:
    case CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync:
    case CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync_ptsz:
      process.memory.freed(params<cuMemFree_v2_params>(data).dptr);
      break;
    case CUPTI_DRIVER_TRACE_CBID_cuMemUnmap:
      process.memory.unmapped(params<cuMemUnmap_params>(data).ptr, params<cuMemUnmap_params>(data).size);
      break;
    default:
      if (begins_recording(id)) {
        process.recordings.fetch_add(1, std::memory_order_relaxed);
      } else {
        graph_call_begins(process, id, data);
      }
      break;
  }
}

void call_ends(Process& process, CUpti_CallbackId id, const CUpti_CallbackData& data) {
  const bool failed = data.functionReturnValue != nullptr &&
                      *static_cast<const CUresult*>(data.functionReturnValue) != CUDA_SUCCESS;
  const auto add = [&](std::uint64_t address, std::uint64_t bytes, RegionKind kind,
                       std::string refusal = {}) {
    if (!failed) process.memory.allocated(address, bytes, kind, current_device(), std::move(refusal));
  };
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoad:
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData:
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx:
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary:
      process.kernels.end_loading(failed ? nullptr : *params<cuModuleLoadData_params>(data).module);
      break;
    case CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync:
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync:
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz: {
      const auto& p = params<cuMemAlloc_v2_params>(data);
      if (!failed) add(*p.dptr, p.bytesize, RegionKind::device);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged: {
      const auto& p = params<cuMemAlloc_v2_params>(data);
      if (!failed) add(*p.dptr, p.bytesize, RegionKind::managed);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2: {
      const auto& p = params<cuMemAllocPitch_v2_params>(data);
      if (!failed) add(*p.dptr, *p.pPitch * p.Height, RegionKind::device);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc:
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2: {
      const auto& p = params<cuMemHostAlloc_params>(data);
      if (!failed) add(reinterpret_cast<std::uint64_t>(*p.pp), p.bytesize, RegionKind::host);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemHostRegister:
    case CUPTI_DRIVER_TRACE_CBID_cuMemHostRegister_v2: {
      const auto& p = params<cuMemHostRegister_v2_params>(data);
      add(reinterpret_cast<std::uint64_t>(p.p), p.bytesize, RegionKind::registered);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemMap: {
      const auto& p = params<cuMemMap_params>(data);
      add(p.ptr, p.size, RegionKind::vmem);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle:
    case CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle_v2: {
      if (failed) break;
      CUdeviceptr base = 0;
      std::size_t bytes = 0;
      const CUdeviceptr address = *params<cuIpcOpenMemHandle_v2_params>(data).pdptr;
      const OwnCalls own;
      if (driver().cuMemGetAddressRange(&base, &bytes, address) == CUDA_SUCCESS)
        add(base, bytes, RegionKind::device, "it is memory of another process (CUDA IPC)");
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz:
      // One that fails may have ended nothing: then streams go on being asked.
      if (!failed) process.recordings.fetch_sub(1, std::memory_order_relaxed);
      break;
    default:
      if (begins_recording(id)) {
        if (failed) process.recordings.fetch_sub(1, std::memory_order_relaxed);
      } else if (!failed) {
        graph_call_ends(process, id, data);
      }
      break;
  }
}

void resource(Process& process, CUpti_CallbackId id, const CUpti_ResourceData& data) {
  if (id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
    process.kernels.context_created(data.context);
    return;
  }
  if (data.resourceDescriptor == nullptr) return;
  const auto& module = *static_cast<const CUpti_ModuleResourceData*>(data.resourceDescriptor);
  if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
    process.kernels.module_loaded(data.context, module.moduleId, module.pCubin, module.cubinSize);
    if (process.kernels.names_repeat() && !launches_are_hooked()) watch_launches(kForNames, true);
  }
  if (id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING)
    process.kernels.module_unloading(data.context, module.moduleId);
}

void on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  Process* p = process();
  if (p == nullptr) return;
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) {  // also within calls of our own, which may load code
    resource(*p, id, *static_cast<const CUpti_ResourceData*>(data));
    return;
  }
  if (OwnCalls::active()) {
    own_call(*p, id, *static_cast<const CUpti_CallbackData*>(data));
    return;
  }
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (is_graph_launch(id)) {
    graph_launch(*p, id, call);
  } else if (is_old_launch(id)) {
    old_launch(*p, call);
  } else if (is_launch(id)) {
    if (call.callbackSite == CUPTI_API_ENTER) {
      launch_begins(*p, id, call);
    } else {
      launch_ends(*p, call);
    }
  } else if (call.callbackSite == CUPTI_API_ENTER) {
    call_begins(*p, id, call);
  } else {
    call_ends(*p, id, call);
  }
}

void enable_callbacks(std::span<const CUpti_CallbackId> ids, bool enable) {
  for (const CUpti_CallbackId id : ids)
    cupti().cuptiEnableCallback(enable ? 1 : 0, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
}

}  // namespace

bool subscribe(std::string* why) {
  CUptiResult result = cupti().cuptiSubscribe(&subscriber, on_callback, nullptr);
  const auto enable = [&](CUpti_CallbackDomain domain, CUpti_CallbackId id) {
    if (result == CUPTI_SUCCESS) result = cupti().cuptiEnableCallback(1, subscriber, domain, id);
  };
  for (const CUpti_CallbackId id : kOthers) enable(CUPTI_CB_DOMAIN_DRIVER_API, id);
  for (const CUpti_CallbackId id : kRecordings) enable(CUPTI_CB_DOMAIN_DRIVER_API, id);
  for (const CUpti_CallbackId id : kOldLaunches) enable(CUPTI_CB_DOMAIN_DRIVER_API, id);
  for (const CUpti_CallbackId id : graph_calls()) enable(CUPTI_CB_DOMAIN_DRIVER_API, id);
  for (const CUpti_CallbackId id : graph_launches()) enable(CUPTI_CB_DOMAIN_DRIVER_API, id);
  enable(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
  enable(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED);
  enable(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
  if (result == CUPTI_SUCCESS) return true;
  const char* text = nullptr;
  cupti().cuptiGetResultString(result, &text);
  *why = std::string("CUPTI gives no callbacks: ") + (text != nullptr ? text : "unknown reason") +
         "; another profiler may be active in it";
  return false;
}

void watch_launches(Watching why, bool enable) {
  static std::mutex mutex;
  static unsigned reasons = 0;
  const std::lock_guard lock(mutex);
  const bool before = reasons != 0;
  reasons = enable ? reasons | why : reasons & ~static_cast<unsigned>(why);
  const bool now = reasons != 0;
  if (now == before) return;
  enable_callbacks(kLaunches, now);
  if (launches_are_hooked()) enable_callbacks(graph_launches(), now);
}

void graph_launches_are_hooked() { enable_callbacks(graph_launches(), false); }

void watch_copies(bool enable) {
  for (const auto& [first, last] : kCopies) {
    for (CUpti_CallbackId id = first; id <= last; ++id)  // one that this CUPTI does not know is no matter
      cupti().cuptiEnableCallback(enable ? 1 : 0, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
  }
}

}  // namespace kerncap::interpose::cuda
