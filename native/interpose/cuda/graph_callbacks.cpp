#include "interpose/cuda/graph_callbacks.h"

#include <mutex>

#include "interpose/cuda/driver.h"
#include "interpose/cuda/graph_launch.h"
#include "interpose/cuda/process.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

#define KERNCAP_CUDA_ID(call, name, symbol) CUPTI_DRIVER_TRACE_CBID_##call,
constexpr CUpti_CallbackId kLaunches[] = {CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
                                          CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz};
constexpr CUpti_CallbackId kCalls[] = {CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate,
                                       CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2,
                                       CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags,
                                       CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams,
                                       CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz,
                                       CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate,
                                       CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2,
                                       CUPTI_DRIVER_TRACE_CBID_cuGraphExecChildGraphNodeSetParams,
                                       CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetEnabled,
                                       CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy,
                                       KERNCAP_CUDA_NODE_CHANGES(KERNCAP_CUDA_ID)};
#undef KERNCAP_CUDA_ID

template <typename Params>
const Params& params(const CUpti_CallbackData& data) {
  return *static_cast<const Params*>(data.functionParams);
}

void changed(Process& process, const CUpti_CallbackData& data, NodeChange change) {
  const auto& p = params<cuGraphExecKernelNodeSetParams_params>(data);
  const std::shared_ptr<KeptGraph> graph = process.graphs.find(p.hGraphExec);
  if (graph == nullptr) return;
  const std::lock_guard lock(graph->mutex);
  graph->change(p.hNode, change, p.nodeParams);
}

}  // namespace

std::span<const CUpti_CallbackId> graph_calls() { return kCalls; }
std::span<const CUpti_CallbackId> graph_launches() { return kLaunches; }

void graph_call_begins(Process& process, CUpti_CallbackId id, const CUpti_CallbackData& data) {
  if (id != CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy || !follows_graphs()) return;
  const OwnCalls own;
  process.graphs.destroyed(params<cuGraphExecDestroy_params>(data).hGraphExec);
}

void graph_call_ends(Process& process, CUpti_CallbackId id, const CUpti_CallbackData& data) {
  if (!follows_graphs()) return;
  const OwnCalls own;
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2: {
      const auto& p = params<cuGraphInstantiateWithFlags_params>(data);
      process.graphs.instantiated(*p.phGraphExec, p.hGraph, 0);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags: {
      const auto& p = params<cuGraphInstantiateWithFlags_params>(data);
      process.graphs.instantiated(*p.phGraphExec, p.hGraph, p.flags);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz: {
      const auto& p = params<cuGraphInstantiateWithParams_params>(data);
      process.graphs.instantiated(*p.phGraphExec, p.hGraph, p.instantiateParams->flags);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2: {
      const auto& p = params<cuGraphExecUpdate_params>(data);
      process.graphs.updated(p.hGraphExec, p.hGraph);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphExecChildGraphNodeSetParams: {
      const auto& p = params<cuGraphExecChildGraphNodeSetParams_params>(data);
      if (const std::shared_ptr<KeptGraph> graph = process.graphs.find(p.hGraphExec)) {
        const std::lock_guard lock(graph->mutex);
        graph->replace_embedded(p.hNode, p.childGraph);
      }
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetEnabled: {
      const auto& p = params<cuGraphNodeSetEnabled_params>(data);
      if (const std::shared_ptr<KeptGraph> graph = process.graphs.find(p.hGraphExec)) {
        const std::lock_guard lock(graph->mutex);
        graph->enable(p.hNode, p.isEnabled != 0);
      }
      break;
    }
#define KERNCAP_CUDA_CASE(call, name, symbol)    \
  case CUPTI_DRIVER_TRACE_CBID_##call:           \
    changed(process, data, graph_driver().name); \
    break;
      KERNCAP_CUDA_NODE_CHANGES(KERNCAP_CUDA_CASE)
#undef KERNCAP_CUDA_CASE
    default:
      break;
  }
}

bool is_graph_launch(CUpti_CallbackId id) {
  return id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch || id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz;
}

void graph_launch(Process& process, CUpti_CallbackId id, const CUpti_CallbackData& data) {
  if (data.callbackSite == CUPTI_API_ENTER) {
    process.captures.wait_while_active();
    const auto& p = params<cuGraphLaunch_ptsz_params>(data);
    graph_launch_begins(process, p.hGraphExec,
                        stream_handle(p.hStream, id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz),
                        data.correlationId);
  } else if (data.functionReturnValue != nullptr &&
             *static_cast<const CUresult*>(data.functionReturnValue) != CUDA_SUCCESS) {
    process.activity.graph_withdrawn(data.correlationId);
  }
}

void own_call(Process& process, CUpti_CallbackId id, const CUpti_CallbackData& data) {
  if (is_graph_launch(id) && data.callbackSite == CUPTI_API_ENTER)
    own_graph_launch_begins(process, data.correlationId);
}

}  // namespace kerncap::interpose::cuda
