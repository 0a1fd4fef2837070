#include "interpose/cuda/kept_graph.h"

#include <algorithm>
#include <utility>

#include "interpose/common/memory_image.h"
#include "interpose/cuda/driver.h"
#include "interpose/cuda/graph_structure.h"
#include "interpose/cuda/kernels.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

std::string name_of(CUfunction function) {
  // The runtime's handles are of kernels.
  const char* name = nullptr;
  if (graph_driver().cuFuncGetName(&name, function) == CUDA_SUCCESS && name != nullptr) return name;
  if (graph_driver().cuKernelGetName(&name, reinterpret_cast<CUkernel>(function)) == CUDA_SUCCESS &&
      name != nullptr) {
    return name;
  }
  return "(kernel without a name)";
}

void read_attributes(CUgraphNode node, Launch& launch) {
  for (const CUlaunchAttributeID id : kRunAttributes) {
    CUlaunchAttribute attribute{};
    attribute.id = id;
    if (graph_driver().cuGraphKernelNodeGetAttribute(node, id, &attribute.value) != CUDA_SUCCESS) continue;
    // All of them begin with a word that is 0, or CU_SHAREDMEM_CARVEOUT_DEFAULT (-1), where nobody set them.
    if (attribute.value.cooperative > 0) add_attribute(attribute, launch);
  }
}

GraphKernel read_kernel(CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS_v2 p{};
  require(graph_driver().cuGraphKernelNodeGetParams(node, &p), "cuGraphKernelNodeGetParams");
  GraphKernel kernel;
  Launch& launch = kernel.launch;
  launch.function = p.func != nullptr ? p.func : reinterpret_cast<CUfunction>(p.kern);
  kernel.symbol = name_of(launch.function);
  launch.context = p.ctx;
  if (launch.context == nullptr) driver().cuCtxGetCurrent(&launch.context);
  static_cast<LaunchShape&>(launch) = shape_of(p);
  launch.parameters = p.kernelParams;
  launch.extra = p.extra;
  read_attributes(node, launch);
  return kernel;
}

// Makes a context the thread's, for as long as it lives.
class InContext {
 public:
  explicit InContext(CUcontext context) {
    driver().cuCtxGetCurrent(&before_);
    if (context != before_) changed_ = driver().cuCtxSetCurrent(context) == CUDA_SUCCESS;
  }
  ~InContext() {
    if (changed_) driver().cuCtxSetCurrent(before_);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  CUcontext before_ = nullptr;
  bool changed_ = false;
};

}  // namespace

KeptGraph::KeptGraph(CUgraph graph, unsigned long long flags, std::size_t most) : flags_(flags) {
  try {
    nodes_ = examine(graph);
    if (nodes_ > most) {
      give_up("its " + std::to_string(nodes_) + " nodes were not kept: the program's other graphs have " +
              "nearly as many as kerncap keeps");
      nodes_ = 0;
      return;
    }
    if (whole_.empty()) {
      const CUresult result = graph_driver().cuGraphClone(&graph_, graph);
      if (result == CUDA_SUCCESS) return;
      graph_ = nullptr;
      whole_ = "cuGraphClone does not copy it: " + error_text(result);
    }
    // What there is to count has to be read now.
    std::vector<CUgraphNode> path;
    list(graph, path);
    for (GraphKernel& kernel : kernels_) {
      kernel.path.clear();
      kernel.launch.parameters = nullptr;
      kernel.launch.extra = nullptr;
    }
    listed_ = true;
    nodes_ = 0;
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

KeptGraph::~KeptGraph() {
  if (graph_ != nullptr) graph_driver().cuGraphDestroy(graph_);
}

// Counts the nodes, and looks for those that cuGraphClone is documented to refuse.
std::size_t KeptGraph::examine(CUgraph graph) {
  const std::vector<CUgraphNode> nodes = graph_nodes(graph);
  std::size_t count = nodes.size();
  for (CUgraphNode node : nodes) {
    const CUgraphNodeType type = node_type(node);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) count += examine(embedded_graph(node));
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE)
      whole_ = "it allocates or frees memory, and the driver does not copy such graphs";
    if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      whole_ = "it has a conditional node, and the driver does not copy such graphs";
      all_listed_ = false;
    }
  }
  return count;
}

void KeptGraph::list(CUgraph graph, std::vector<CUgraphNode>& path) {
  const GraphStructure structure = read_structure(graph);
  for (const std::uint32_t i : structure.order()) {
    CUgraphNode node = structure.nodes[i];
    if (!is_enabled(node)) continue;
    path.push_back(node);
    if (structure.types[i] == CU_GRAPH_NODE_TYPE_KERNEL) {
      kernels_.push_back(read_kernel(node));
      kernels_.back().path = path;
    } else if (structure.types[i] == CU_GRAPH_NODE_TYPE_GRAPH) {
      list(embedded_graph(node), path);
    }
    path.pop_back();
  }
}

std::vector<GraphKernel>& KeptGraph::kernels(Kernels& known) {
  if (!listed_) {
    kernels_.clear();
    names_.reset();
    tallies_.reset();
    listed_ = true;
    try {
      std::vector<CUgraphNode> path;
      if (graph_ != nullptr) list(graph_, path);
    } catch (const std::exception& error) {
      give_up(error.what());
    }
  }
  if (names_ != nullptr) return kernels_;
  auto names = std::make_shared<GraphNames>();
  auto tallies = std::make_shared<GraphTallies>();
  std::unordered_map<const Kernel*, std::size_t> places;
  for (GraphKernel& kernel : kernels_) {
    const InContext in(kernel.launch.context);
    kernel.kernel = known.find(kernel.launch.function, kernel.launch.context, kernel.symbol.c_str());
    (*names)[kernel.symbol].push_back(kernel.kernel);
    const auto [place, is_new] = places.try_emplace(kernel.kernel, tallies->size());
    if (is_new) tallies->push_back({kernel.kernel, 0, {}});
    GraphTally& tally = (*tallies)[place->second];
    ++tally.launches;
    tally.shape = kernel.launch;
  }
  for (auto& [name, list] : *names) {
    if (std::ranges::all_of(list, [&](const Kernel* other) { return other == list[0]; })) list.resize(1);
  }
  names_ = std::move(names);
  tallies_ = std::move(tallies);
  return kernels_;
}

// The copy's node for one of the graph that it was made of; null where there is none.
CUgraphNode KeptGraph::twin(CUgraphNode node, CUgraph graph) const {
  CUgraphNode found = nullptr;
  if (graph_driver().cuGraphNodeFindInClone(&found, node, graph) == CUDA_SUCCESS) return found;
  const auto replaced = replaced_.find(node);
  if (replaced != replaced_.end()) return replaced->second;
  for (CUgraphNode other : graph_nodes(graph)) {
    if (node_type(other) != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    found = twin(node, embedded_graph(other));
    if (found != nullptr) return found;
  }
  return nullptr;
}

void KeptGraph::give_up(const std::string& why) {
  whole_ = why;
  all_listed_ = false;
  kernels_.clear();
  names_.reset();
  tallies_.reset();
  listed_ = true;
  if (graph_ != nullptr) graph_driver().cuGraphDestroy(std::exchange(graph_, nullptr));
}

void KeptGraph::change(CUgraphNode node, NodeChange change, const void* what) {
  if (graph_ == nullptr) {  // which kernels it runs may have changed
    if (all_listed_) give_up(whole_);
    return;
  }
  try {
    CUgraphNode mine = twin(node, graph_);
    if (mine == nullptr) throw Refused("the program changed a node of it that kerncap has no copy of");
    if (change == nullptr) throw Refused("this driver has no call to change a copy of it");
    require(change(mine, what), "following a change that the program made to it");
    listed_ = false;
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

void KeptGraph::replace_embedded(CUgraphNode node, CUgraph child) {
  if (graph_ == nullptr) return change(node, nullptr, nullptr);
  try {
    CUgraphNode old = nullptr;
    const auto replaced = replaced_.find(node);
    if (replaced != replaced_.end()) {
      old = replaced->second;
    } else if (graph_driver().cuGraphNodeFindInClone(&old, node, graph_) != CUDA_SUCCESS) {
      throw Refused("the program replaced a graph embedded in it that kerncap has no copy of");
    }
    // There is no call that gives a node another graph: another node takes its place.
    const CudaGraphs& api = graph_driver();
    std::size_t before = 0, behind = 0;
    require(api.cuGraphNodeGetDependencies(old, nullptr, nullptr, &before), "cuGraphNodeGetDependencies");
    require(api.cuGraphNodeGetDependentNodes(old, nullptr, nullptr, &behind), "cuGraphNodeGetDependentNodes");
    std::vector<CUgraphNode> from(before), to(behind);
    std::vector<CUgraphEdgeData> from_data(before), to_data(behind);
    if (before != 0) {
      require(api.cuGraphNodeGetDependencies(old, from.data(), from_data.data(), &before),
              "cuGraphNodeGetDependencies");
    }
    if (behind != 0) {
      require(api.cuGraphNodeGetDependentNodes(old, to.data(), to_data.data(), &behind),
              "cuGraphNodeGetDependentNodes");
    }
    CUgraphNode made = nullptr;
    require(api.cuGraphAddChildGraphNode(&made, graph_, nullptr, 0, child), "cuGraphAddChildGraphNode");
    const auto add = [&](const std::vector<CUgraphNode>& a, const std::vector<CUgraphNode>& b,
                         const std::vector<CUgraphEdgeData>& data) {
      if (!a.empty())
        require(api.cuGraphAddDependencies(graph_, a.data(), b.data(), data.data(), a.size()),
                "cuGraphAddDependencies");
    };
    add(from, std::vector<CUgraphNode>(before, made), from_data);
    add(std::vector<CUgraphNode>(behind, made), to, to_data);
    require(api.cuGraphDestroyNode(old), "cuGraphDestroyNode");
    replaced_[node] = made;
    listed_ = false;
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

void KeptGraph::enable(CUgraphNode node, bool enabled) {
  if (graph_ == nullptr) return change(node, nullptr, nullptr);
  try {
    CUgraphNode mine = twin(node, graph_);
    if (mine == nullptr)
      throw Refused("the program enabled or disabled a node of it that kerncap has no copy of");
    enabled ? disabled_.erase(mine) : disabled_.insert(mine).second;
    listed_ = false;
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

}  // namespace kerncap::interpose::cuda
