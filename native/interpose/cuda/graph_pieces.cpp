#include "interpose/cuda/graph_pieces.h"

#include "interpose/common/memory_image.h"
#include "interpose/cuda/driver.h"
#include "interpose/cuda/graph_structure.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names

GraphPiece::~GraphPiece() {
  if (exec != nullptr) graph_driver().cuGraphExecDestroy(exec);
  if (graph != nullptr) graph_driver().cuGraphDestroy(graph);
}

GraphPieces::GraphPieces(const KeptGraph& whole, const GraphKernel& wanted) : whole_(whole), wanted_(wanted) {
  cut(before, false);
  cut(behind, true);
  take_kernel();
}

// cuGraphNodeFindInClone is documented for the nodes of the graph itself. Those of embedded graphs are paired
// by position where it does not know them. Either way the pairs have to be of one type and to have the same
// edges.
void GraphPieces::pair(CUgraph original, CUgraph copy, Twins& twins) {
  const GraphStructure theirs = read_structure(original), ours = read_structure(copy);
  const std::size_t count = theirs.nodes.size();
  const auto differ = [] { return Refused("the driver's copy of it is not like it"); };
  if (ours.nodes.size() != count) throw differ();
  std::unordered_map<CUgraphNode, std::uint32_t> position;
  for (std::uint32_t i = 0; i < count; ++i) position[ours.nodes[i]] = i;
  std::vector<std::uint32_t> index(count);
  std::vector<bool> taken(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    CUgraphNode found = nullptr;
    const bool known = graph_driver().cuGraphNodeFindInClone(&found, theirs.nodes[i], copy) == CUDA_SUCCESS &&
                       position.contains(found);
    index[i] = known ? position[found] : i;
    if (taken[index[i]] || ours.types[index[i]] != theirs.types[i]) throw differ();
    taken[index[i]] = true;
    twins[theirs.nodes[i]] = ours.nodes[index[i]];
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    std::vector<bool> wanted(count);
    for (const std::uint32_t target : theirs.edges[i]) wanted[index[target]] = true;
    const auto& edges = ours.edges[index[i]];
    if (edges.size() != theirs.edges[i].size()) throw differ();
    for (const std::uint32_t target : edges) {
      if (!wanted[target]) throw differ();
    }
    if (theirs.types[i] == CU_GRAPH_NODE_TYPE_GRAPH)
      pair(embedded_graph(theirs.nodes[i]), embedded_graph(twins.at(theirs.nodes[i])), twins);
  }
}

void GraphPieces::cut(GraphPiece& piece, bool waiting) {
  require(graph_driver().cuGraphClone(&piece.graph, whole_.graph()), "cuGraphClone");
  Twins twins;
  pair(whole_.graph(), piece.graph, twins);
  if (cut(piece, whole_.graph(), 0, waiting, twins) == 0) return;
  instantiate(piece);
  if (whole_.all_enabled()) return;
  for (const auto& [original, copy] : twins) {
    if (!whole_.is_enabled(original))
      require(graph_driver().cuGraphNodeSetEnabled(piece.exec, copy, 0), "cuGraphNodeSetEnabled");
  }
}

// Takes out of the copy of one graph what is not the piece's; how many nodes remain. Each piece has with any
// two nodes all that run between them: no order is lost with those taken out.
std::size_t GraphPieces::cut(GraphPiece& piece, CUgraph original, std::size_t level, bool waiting,
                             Twins& twins) {
  const GraphStructure structure = read_structure(original);
  std::uint32_t pivot = 0;
  while (structure.nodes.at(pivot) != wanted_.path[level]) ++pivot;
  const std::vector<bool> behind = structure.behind(pivot);
  std::size_t kept = 0;
  for (std::uint32_t i = 0; i < structure.nodes.size(); ++i) {
    CUgraphNode copy = twins.at(structure.nodes[i]);
    bool keep = behind[i] == waiting;
    if (i == pivot) {
      keep = level + 1 < wanted_.path.size() &&
             cut(piece, embedded_graph(structure.nodes[i]), level + 1, waiting, twins) != 0;
    } else if (keep) {
      piece.kernels += count_kernels(structure.nodes[i]);
    }
    if (keep) {
      ++kept;
      continue;
    }
    require(graph_driver().cuGraphDestroyNode(copy), "cuGraphDestroyNode");
    forget(structure.nodes[i], twins);
  }
  return kept;
}

void GraphPieces::forget(CUgraphNode original, Twins& twins) {
  twins.erase(original);
  if (node_type(original) != CU_GRAPH_NODE_TYPE_GRAPH) return;
  for (CUgraphNode inner : graph_nodes(embedded_graph(original))) forget(inner, twins);
}

std::uint32_t GraphPieces::count_kernels(CUgraphNode node) const {
  if (!whole_.is_enabled(node)) return 0;
  const CUgraphNodeType type = node_type(node);
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) return 1;
  std::uint32_t count = 0;
  if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
    for (CUgraphNode inner : graph_nodes(embedded_graph(node))) count += count_kernels(inner);
  }
  return count;
}

void GraphPieces::take_kernel() {
  const CudaGraphs& api = graph_driver();
  CUgraphNode original = wanted_.path.back(), node = nullptr;
  CUDA_KERNEL_NODE_PARAMS_v2 parameters{};
  require(api.cuGraphKernelNodeGetParams(original, &parameters), "cuGraphKernelNodeGetParams");
  require(api.cuGraphCreate(&kernel.graph, 0), "cuGraphCreate");
  require(api.cuGraphAddKernelNode(&node, kernel.graph, nullptr, 0, &parameters), "cuGraphAddKernelNode");
  require(api.cuGraphKernelNodeCopyAttributes(node, original), "cuGraphKernelNodeCopyAttributes");
  kernel.kernels = 1;
  instantiate(kernel);
}

void GraphPieces::instantiate(GraphPiece& piece) const {
  require(graph_driver().cuGraphInstantiate(&piece.exec, piece.graph,
                                            whole_.flags() & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY),
          "cuGraphInstantiate");
}

}  // namespace kerncap::interpose::cuda
