// A CUDA graph as nodes and the order that they run in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "abi/cuda_graph.h"

namespace kerncap::interpose::cuda {

struct GraphStructure {
  std::vector<abi::CUgraphNode> nodes;
  std::vector<abi::CUgraphNodeType> types;
  std::vector<std::vector<std::uint32_t>> edges;  // of each node, those that wait for it

  // An order that they can run in: of nodes that may run, the one that the driver lists first.
  [[nodiscard]] std::vector<std::uint32_t> order() const;
  // Which nodes run only after that one.
  [[nodiscard]] std::vector<bool> behind(std::uint32_t node) const;
};

// These throw Refused where the driver does not tell.
std::vector<abi::CUgraphNode> graph_nodes(abi::CUgraph graph);
abi::CUgraphNodeType node_type(abi::CUgraphNode node);
GraphStructure read_structure(abi::CUgraph graph);
// The graph that a node of type CU_GRAPH_NODE_TYPE_GRAPH runs.
abi::CUgraph embedded_graph(abi::CUgraphNode node);
// Throws Refused ("cuGraphClone gave CUDA_ERROR_...").
void require(abi::CUresult result, const char* call);

}  // namespace kerncap::interpose::cuda
