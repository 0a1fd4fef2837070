#include "interpose/cuda/graph_structure.h"

#include <functional>
#include <queue>
#include <unordered_map>

#include "interpose/common/memory_image.h"
#include "interpose/cuda/driver.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names

void require(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) throw Refused(std::string(call) + " gave " + error_text(result));
}

std::vector<CUgraphNode> graph_nodes(CUgraph graph) {
  std::size_t count = 0;
  require(graph_driver().cuGraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes");
  std::vector<CUgraphNode> nodes(count);
  if (count != 0) require(graph_driver().cuGraphGetNodes(graph, nodes.data(), &count), "cuGraphGetNodes");
  return nodes;
}

CUgraphNodeType node_type(CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  require(graph_driver().cuGraphNodeGetType(node, &type), "cuGraphNodeGetType");
  return type;
}

CUgraph embedded_graph(CUgraphNode node) {
  CUgraph graph = nullptr;
  require(graph_driver().cuGraphChildGraphNodeGetGraph(node, &graph), "cuGraphChildGraphNodeGetGraph");
  return graph;
}

GraphStructure read_structure(CUgraph graph) {
  GraphStructure structure;
  structure.nodes = graph_nodes(graph);
  structure.edges.resize(structure.nodes.size());
  std::unordered_map<CUgraphNode, std::uint32_t> index;
  for (std::uint32_t i = 0; i < structure.nodes.size(); ++i) {
    index[structure.nodes[i]] = i;
    structure.types.push_back(node_type(structure.nodes[i]));
  }
  // Asked for their number alone, the driver may refuse: edges can have data (CUDA_ERROR_LOSSY_QUERY).
  std::vector<CUgraphNode> from, to;
  std::vector<CUgraphEdgeData> data;
  for (std::size_t room = 2 * structure.nodes.size() + 1;; room *= 2) {
    std::size_t count = room;
    from.resize(room), to.resize(room), data.resize(room);
    require(graph_driver().cuGraphGetEdges(graph, from.data(), to.data(), data.data(), &count),
            "cuGraphGetEdges");
    if (count == room) continue;
    from.resize(count);
    break;
  }
  for (std::size_t i = 0; i < from.size(); ++i) structure.edges[index.at(from[i])].push_back(index.at(to[i]));
  return structure;
}

std::vector<std::uint32_t> GraphStructure::order() const {
  std::vector<std::uint32_t> waits_for(nodes.size()), order;
  for (const auto& targets : edges) {
    for (const std::uint32_t target : targets) ++waits_for[target];
  }
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (waits_for[i] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const std::uint32_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const std::uint32_t target : edges[next]) {
      if (--waits_for[target] == 0) ready.push(target);
    }
  }
  return order;
}

std::vector<bool> GraphStructure::behind(std::uint32_t node) const {
  std::vector<bool> found(nodes.size());
  std::vector<std::uint32_t> open{node};
  while (!open.empty()) {
    const std::uint32_t next = open.back();
    open.pop_back();
    for (const std::uint32_t target : edges[next]) {
      if (found[target]) continue;
      found[target] = true;
      open.push_back(target);
    }
  }
  return found;
}

}  // namespace kerncap::interpose::cuda
