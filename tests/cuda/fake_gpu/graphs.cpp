// Graphs of the fake driver. A handle that was destroyed is an error here, which a real driver need not tell.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "graph_calls.h"
#include "machine.h"

using namespace fake;  // NOLINT

struct kerncap::abi::CUgraphNode_st {
  CUgraph graph = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::vector<CUgraphNode> before;
  CUgraphNode origin = nullptr;  // that it is a copy of
  bool enabled = true;
  // By type.
  KernelRun run;
  std::vector<void*> parameters;  // into run.packed
  std::map<int, std::vector<char>> attributes;
  CUDA_MEMSET_NODE_PARAMS memset{};
  CUDA_MEMCPY3D memcpy{};
  CUDA_HOST_NODE_PARAMS host{};
  std::unique_ptr<CUgraph_st> child;
};
struct kerncap::abi::CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  CUgraph origin = nullptr;
  CUgraph_st() = default;
  ~CUgraph_st();
};
struct kerncap::abi::CUgraphExec_st {
  CUgraph source = nullptr;
  std::unique_ptr<CUgraph_st> graph;
};

namespace {

constexpr CUresult kBad = CUDA_ERROR_INVALID_VALUE;

std::recursive_mutex mutex;
std::set<const void*> live;

template <typename T>
T* enter(std::unique_ptr<T> made) {
  live.insert(made.get());
  return made.release();
}
bool is_live(const void* handle) { return live.count(handle) != 0; }

CUgraphNode add(CUgraph graph, CUgraphNodeType type) {
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
  CUgraphNode node = graph->nodes.back().get();
  node->graph = graph;
  node->type = type;
  live.insert(node);
  return node;
}

CUresult add(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
             CUgraphNodeType type) {
  if (!is_live(graph)) return kBad;
  *node = add(graph, type);
  (*node)->before.assign(before, before + count);
  return CUDA_SUCCESS;
}

CUresult set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2& p) {
  if (!is_live(node) || node->type != CU_GRAPH_NODE_TYPE_KERNEL) return kBad;
  node->run = {p.func,
               {p.gridDimX, p.gridDimY, p.gridDimZ},
               {p.blockDimX, p.blockDimY, p.blockDimZ},
               p.sharedMemBytes,
               pack(p.func, p.kernelParams, p.extra)};
  return CUDA_SUCCESS;
}

void copy_work(CUgraphNode to, const CUgraphNode_st& from);

// cuGraphClone is documented not to take memory nodes.
bool copy_nodes(CUgraph to, const CUgraph_st& from, bool with_memory = false) {
  std::map<CUgraphNode, CUgraphNode> twins;
  for (const auto& node : from.nodes) {
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && !with_memory) return false;
    CUgraphNode made = add(to, node->type);
    made->origin = node.get();
    copy_work(made, *node);
    twins[node.get()] = made;
  }
  for (const auto& node : from.nodes)
    for (CUgraphNode other : node->before) twins[node.get()]->before.push_back(twins.at(other));
  return true;
}

void copy_work(CUgraphNode to, const CUgraphNode_st& from) {
  to->run = from.run;
  to->attributes = from.attributes;
  to->memset = from.memset, to->memcpy = from.memcpy, to->host = from.host;
  if (from.child == nullptr) return;
  to->child = std::make_unique<CUgraph_st>();
  live.insert(to->child.get());
  copy_nodes(to->child.get(), *from.child);
}

std::vector<CUgraphNode> in_order(const CUgraph_st& graph) {
  std::vector<CUgraphNode> order;
  std::set<CUgraphNode> done;
  while (order.size() < graph.nodes.size()) {
    for (const auto& node : graph.nodes) {
      const auto is_done = [&](CUgraphNode other) { return done.count(other) != 0; };
      if (is_done(node.get()) || !std::all_of(node->before.begin(), node->before.end(), is_done)) continue;
      order.push_back(node.get());
      done.insert(node.get());
    }
  }
  return order;
}

using Work = std::vector<std::function<int()>>;
void collect(const CUgraph_st& graph, std::uint32_t correlation, Work& work) {
  for (CUgraphNode node : in_order(graph)) {
    if (!node->enabled) continue;
    switch (node->type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
        work.push_back([run = node->run, correlation, id = reinterpret_cast<std::uint64_t>(node)] {
          return run_kernel(run, correlation, id);
        });
        break;
      case CU_GRAPH_NODE_TYPE_MEMSET:
        work.push_back([p = node->memset] {
          std::memset(reinterpret_cast<void*>(p.dst), static_cast<int>(p.value), p.width);
          return 0;
        });
        break;
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        work.push_back([p = node->memcpy] {
          std::memcpy(reinterpret_cast<void*>(p.dstDevice), reinterpret_cast<void*>(p.srcDevice),
                      p.WidthInBytes);
          return 0;
        });
        break;
      case CU_GRAPH_NODE_TYPE_HOST:
        work.push_back([p = node->host] { return p.fn(p.userData), 0; });
        break;
      case CU_GRAPH_NODE_TYPE_GRAPH:
        collect(*node->child, correlation, work);
        break;
      default:
        break;
    }
  }
}

// The node of an executable graph that `node`, of the graph it was made of, stands for.
CUgraphNode of_exec(CUgraph graph, CUgraphNode node) {
  for (const auto& own : graph->nodes) {
    if (own->origin == node) return own.get();
    CUgraphNode inner = own->child != nullptr ? of_exec(own->child.get(), node) : nullptr;
    if (inner != nullptr) return inner;
  }
  return nullptr;
}

template <typename Body>
CUresult change(CUpti_driver_api_trace_cbid id, CUgraphExec exec, CUgraphNode node, const void* what,
                Body body) {
  const cuGraphExecKernelNodeSetParams_params params{exec, node, what};
  return traced(id, params, nullptr, next_correlation(), [&] {
    const std::lock_guard lock(mutex);
    if (!is_live(exec) || !is_live(node)) return kBad;
    CUgraphNode own = of_exec(exec->graph.get(), node);
    return own != nullptr ? body(own) : kBad;
  });
}

CUresult launch(CUpti_driver_api_trace_cbid id, CUgraphExec exec, CUstream stream) {
  const cuGraphLaunch_ptsz_params params{exec, stream};
  const std::uint32_t correlation = next_correlation();
  return traced(id, params, nullptr, correlation, [&] {
    const std::lock_guard lock(mutex);
    if (!is_live(exec) || stream_records(stream)) return kBad;
    Work work;
    collect(*exec->graph, correlation, work);
    submit([work = std::move(work)] {
      for (const auto& one : work) {
        if (one() != 0) return 1;
      }
      return 0;
    });
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUgraph_st::~CUgraph_st() {
  live.erase(this);
  for (const auto& node : nodes) live.erase(node.get());
}

bool fake::stream_records(CUstream stream) {
  return reinterpret_cast<std::uintptr_t>(stream) > 2 && stream->recorded != nullptr;
}

CUresult fake::record_kernel(CUstream stream, const KernelRun& run) {
  const std::lock_guard lock(mutex);
  CUgraphNode node = add(stream->recorded, CU_GRAPH_NODE_TYPE_KERNEL);
  node->run = run;
  if (stream->last != nullptr) node->before.push_back(stream->last);
  stream->last = node;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  const std::pair<CUstream, CUstreamCaptureMode> params{stream, mode};
  return traced(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, params, nullptr, next_correlation(), [&] {
    *stream = {};
    return cuGraphCreate(&stream->recorded, 0);
  });
}
EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  *graph = stream->recorded;
  *stream = {};
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  *status = static_cast<CUstreamCaptureStatus>(stream_records(stream) ? 1 : 0);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetName(const char** name, CUfunction f) {
  return *name = f->name.c_str(), CUDA_SUCCESS;
}
EXPORT CUresult cuKernelGetName(const char**, CUkernel) { return kBad; }

EXPORT CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  const std::lock_guard lock(mutex);
  return *graph = enter(std::make_unique<CUgraph_st>()), CUDA_SUCCESS;
}
EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  const std::lock_guard lock(mutex);
  if (!is_live(graph)) return kBad;
  const std::unique_ptr<CUgraph_st> gone(graph);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphClone(CUgraph* clone, CUgraph graph) {
  const std::lock_guard lock(mutex);
  if (!is_live(graph)) return kBad;
  auto made = std::make_unique<CUgraph_st>();
  made->origin = graph;
  if (!copy_nodes(made.get(), *graph)) return CUDA_ERROR_NOT_SUPPORTED;
  return *clone = enter(std::move(made)), CUDA_SUCCESS;
}
EXPORT CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
  const std::lock_guard lock(mutex);
  if (!is_live(original) || !is_live(clone) || clone->origin != original->graph) return kBad;
  for (const auto& own : clone->nodes) {
    if (own->origin == original) return *node = own.get(), CUDA_SUCCESS;
  }
  return kBad;
}
EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  const std::lock_guard lock(mutex);
  if (!is_live(graph)) return kBad;
  for (std::size_t i = 0; nodes != nullptr && i < std::min(*count, graph->nodes.size()); ++i)
    nodes[i] = graph->nodes[i].get();
  return *count = graph->nodes.size(), CUDA_SUCCESS;
}
EXPORT CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                                   std::size_t* count) {
  const std::lock_guard lock(mutex);
  if (!is_live(graph)) return kBad;
  if (data == nullptr) return CUDA_ERROR_LOSSY_QUERY;
  std::size_t edges = 0;
  for (const auto& node : graph->nodes) {
    for (CUgraphNode other : node->before) {
      if (edges < *count) from[edges] = other, to[edges] = node.get(), data[edges] = {};
      ++edges;
    }
  }
  return *count = std::min(edges, *count), CUDA_SUCCESS;
}
EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  const std::lock_guard lock(mutex);
  return is_live(node) ? (*type = node->type, CUDA_SUCCESS) : kBad;
}
EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* before, CUgraphEdgeData*,
                                              std::size_t* count) {
  const std::lock_guard lock(mutex);
  if (!is_live(node)) return kBad;
  if (before != nullptr) std::copy(node->before.begin(), node->before.end(), before);
  return *count = node->before.size(), CUDA_SUCCESS;
}
EXPORT CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* behind, CUgraphEdgeData*,
                                                std::size_t* count) {
  const std::lock_guard lock(mutex);
  if (!is_live(node)) return kBad;
  std::size_t found = 0;
  for (const auto& other : node->graph->nodes) {
    if (std::find(other->before.begin(), other->before.end(), node) == other->before.end()) continue;
    if (behind != nullptr) behind[found] = other.get();
    ++found;
  }
  return *count = found, CUDA_SUCCESS;
}
EXPORT CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                          const CUgraphEdgeData*, std::size_t count) {
  const std::lock_guard lock(mutex);
  if (!is_live(graph)) return kBad;
  for (std::size_t i = 0; i < count; ++i) to[i]->before.push_back(from[i]);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphDestroyNode(CUgraphNode node) {
  const std::lock_guard lock(mutex);
  if (!is_live(node)) return kBad;
  live.erase(node);
  CUgraph graph = node->graph;
  for (const auto& other : graph->nodes) std::erase(other->before, node);
  std::erase_if(graph->nodes, [node](const auto& own) { return own.get() == node; });
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                        std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  const std::lock_guard lock(mutex);
  const CUresult result = add(node, graph, before, count, CU_GRAPH_NODE_TYPE_KERNEL);
  return result == CUDA_SUCCESS ? set_kernel(*node, *p) : result;
}
EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* p) {
  const std::lock_guard lock(mutex);
  if (!is_live(node) || node->type != CU_GRAPH_NODE_TYPE_KERNEL) return kBad;
  KernelRun& run = node->run;
  node->parameters.clear();
  for (unsigned i = 0; i < run.function->parameters[0]; ++i)
    node->parameters.push_back(run.packed.data() + run.function->parameters[1 + 2 * i]);
  *p = {run.function, run.grid[0],  run.grid[1],
        run.grid[2],  run.block[0], run.block[1],
        run.block[2], run.shared,   node->parameters.data(),
        nullptr,      nullptr,      nullptr};
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  const std::lock_guard lock(mutex);
  return set_kernel(node, *p);
}
EXPORT CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUlaunchAttributeID id, const void* value) {
  const std::lock_guard lock(mutex);
  if (!is_live(node)) return kBad;
  const auto* bytes = static_cast<const char*>(value);
  node->attributes[id].assign(bytes, bytes + 64);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUlaunchAttributeID id, void* value) {
  const std::lock_guard lock(mutex);
  if (!is_live(node)) return kBad;
  std::memset(value, 0, 64);
  const auto found = node->attributes.find(id);
  if (found != node->attributes.end()) std::memcpy(value, found->second.data(), 64);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  const std::lock_guard lock(mutex);
  return is_live(to) && is_live(from) ? (to->attributes = from->attributes, CUDA_SUCCESS) : kBad;
}
EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                     std::size_t count, const CUDA_MEMSET_NODE_PARAMS* p, CUcontext) {
  const std::lock_guard lock(mutex);
  const CUresult result = add(node, graph, before, count, CU_GRAPH_NODE_TYPE_MEMSET);
  return result == CUDA_SUCCESS ? ((*node)->memset = *p, result) : result;
}
EXPORT CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* p) {
  const std::lock_guard lock(mutex);
  return is_live(node) ? (node->memset = *p, CUDA_SUCCESS) : kBad;
}
EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                     std::size_t count, const CUDA_MEMCPY3D* p, CUcontext) {
  const std::lock_guard lock(mutex);
  const CUresult result = add(node, graph, before, count, CU_GRAPH_NODE_TYPE_MEMCPY);
  return result == CUDA_SUCCESS ? ((*node)->memcpy = *p, result) : result;
}
EXPORT CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                   std::size_t count, const CUDA_HOST_NODE_PARAMS* p) {
  const std::lock_guard lock(mutex);
  const CUresult result = add(node, graph, before, count, CU_GRAPH_NODE_TYPE_HOST);
  return result == CUDA_SUCCESS ? ((*node)->host = *p, result) : result;
}
EXPORT CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* p) {
  const std::lock_guard lock(mutex);
  return is_live(node) ? (node->host = *p, CUDA_SUCCESS) : kBad;
}
EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                       std::size_t count, void*) {
  const std::lock_guard lock(mutex);
  return add(node, graph, before, count, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
}
EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                         std::size_t count, CUgraph child) {
  const std::lock_guard lock(mutex);
  if (!is_live(child)) return kBad;
  const CUresult result = add(node, graph, before, count, CU_GRAPH_NODE_TYPE_GRAPH);
  if (result != CUDA_SUCCESS) return result;
  (*node)->child = std::make_unique<CUgraph_st>();
  live.insert((*node)->child.get());
  return copy_nodes((*node)->child.get(), *child) ? CUDA_SUCCESS : kBad;
}
EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  const std::lock_guard lock(mutex);
  if (!is_live(node) || node->child == nullptr) return kBad;
  return *graph = node->child.get(), CUDA_SUCCESS;
}
EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  const cuGraphInstantiateWithFlags_params params{exec, graph, flags};
  return traced(CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, params, nullptr, next_correlation(),
                [&] {
                  const std::lock_guard lock(mutex);
                  if (!is_live(graph)) return kBad;
                  auto made = std::make_unique<CUgraphExec_st>();
                  made->source = graph;
                  made->graph = std::make_unique<CUgraph_st>();
                  copy_nodes(made->graph.get(), *graph, true);
                  return *exec = enter(std::move(made)), CUDA_SUCCESS;
                });
}
EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  const cuGraphExecDestroy_params params{exec};
  return traced(CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy, params, nullptr, next_correlation(), [&] {
    const std::lock_guard lock(mutex);
    if (!is_live(exec)) return kBad;
    live.erase(exec);
    const std::unique_ptr<CUgraphExec_st> gone(exec);
    return CUDA_SUCCESS;
  });
}
EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                  const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  return change(CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams_v2, exec, node, p,
                [&](CUgraphNode own) { return set_kernel(own, *p); });
}
EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_MEMSET_NODE_PARAMS* p, CUcontext) {
  return change(CUPTI_DRIVER_TRACE_CBID_cuGraphExecMemsetNodeSetParams, exec, node, p,
                [&](CUgraphNode own) { return own->memset = *p, CUDA_SUCCESS; });
}
EXPORT CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                             const CUDA_HOST_NODE_PARAMS* p) {
  return change(CUPTI_DRIVER_TRACE_CBID_cuGraphExecHostNodeSetParams, exec, node, p,
                [&](CUgraphNode own) { return own->host = *p, CUDA_SUCCESS; });
}
EXPORT CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return change(CUPTI_DRIVER_TRACE_CBID_cuGraphExecChildGraphNodeSetParams, exec, node, child,
                [&](CUgraphNode own) {
                  if (!is_live(child)) return kBad;
                  own->child = std::make_unique<CUgraph_st>();
                  return copy_nodes(own->child.get(), *child) ? CUDA_SUCCESS : kBad;
                });
}
EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  const cuGraphNodeSetEnabled_params params{exec, node, enabled};
  return traced(CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetEnabled, params, nullptr, next_correlation(), [&] {
    const std::lock_guard lock(mutex);
    CUgraphNode own = is_live(exec) && is_live(node) ? of_exec(exec->graph.get(), node) : nullptr;
    return own != nullptr ? (own->enabled = enabled != 0, CUDA_SUCCESS) : kBad;
  });
}
EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, void*) {
  const cuGraphExecUpdate_params params{exec, graph};
  return traced(CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2, params, nullptr, next_correlation(), [&] {
    const std::lock_guard lock(mutex);
    if (!is_live(exec) || !is_live(graph) || exec->graph->nodes.size() != graph->nodes.size()) return kBad;
    for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
      if (exec->graph->nodes[i]->type != graph->nodes[i]->type) return kBad;
      copy_work(exec->graph->nodes[i].get(), *graph->nodes[i]);
    }
    return CUDA_SUCCESS;
  });
}
LAUNCHER(cuGraphLaunch)(CUgraphExec exec, CUstream stream) {
  return launch(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, exec, stream);
}
LAUNCHER(cuGraphLaunch_ptsz)(CUgraphExec exec, CUstream stream) {
  return launch(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz, exec, stream);
}
