// What an executable graph of the program runs: a copy of the graph that it was made of, with every change
// that was made to it since. The program may long have destroyed or altered that graph itself.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "abi/cuda_graph.h"
#include "interpose/cuda/activity.h"
#include "interpose/cuda/launch.h"

namespace kerncap::interpose::cuda {

struct Kernel;
class Kernels;

// A kernel node.
struct GraphKernel {
  std::vector<abi::CUgraphNode> path;  // the nodes whose embedded graphs it is in, and itself
  std::string symbol;
  Launch launch;  // its parameters belong to the node
  Kernel* kernel = nullptr;
};

// How often one launch of a graph runs a kernel.
struct GraphTally {
  Kernel* kernel;
  std::uint32_t launches;
  LaunchShape shape;  // the last one's
};
using GraphTallies = std::vector<GraphTally>;

using NodeChange = abi::CUresult (*)(abi::CUgraphNode node, const void* what);

class KeptGraph {
 public:
  // Copies `graph`, unless it has more than `most` nodes. Never throws: whole() says why there is no copy.
  KeptGraph(abi::CUgraph graph, unsigned long long flags, std::size_t most);
  ~KeptGraph();
  KeptGraph(const KeptGraph&) = delete;
  KeptGraph& operator=(const KeptGraph&) = delete;

  // The calls by which the program changes its executable graph. `node` is one of the graph that this was
  // copied from.
  void change(abi::CUgraphNode node, NodeChange change, const void* what);
  void replace_embedded(abi::CUgraphNode node, abi::CUgraph child);
  void enable(abi::CUgraphNode node, bool enabled);
  // From now on it is not known what it runs.
  void give_up(const std::string& why);

  // Its kernels that are enabled, in the order that they count in.
  std::vector<GraphKernel>& kernels(Kernels& known);
  // The same by their names.
  [[nodiscard]] std::shared_ptr<const GraphNames> names() const { return names_; }
  // And how many they are, once kernels() has been called since the last change; null until then.
  [[nodiscard]] std::shared_ptr<const GraphTallies> tallies() const { return listed_ ? tallies_ : nullptr; }
  // False where kernels run that kernels() does not list.
  [[nodiscard]] bool all_listed() const { return all_listed_; }
  // Why its kernels cannot be run one by one; empty where they can.
  [[nodiscard]] const std::string& whole() const { return whole_; }

  [[nodiscard]] std::size_t nodes() const { return nodes_; }
  [[nodiscard]] abi::CUgraph graph() const { return graph_; }
  [[nodiscard]] unsigned long long flags() const { return flags_; }
  [[nodiscard]] bool is_enabled(abi::CUgraphNode node) const { return !disabled_.contains(node); }
  [[nodiscard]] bool all_enabled() const { return disabled_.empty(); }

  // Held by who reads or changes it.
  std::mutex mutex;

 private:
  std::size_t examine(abi::CUgraph graph);
  void list(abi::CUgraph graph, std::vector<abi::CUgraphNode>& path);
  abi::CUgraphNode twin(abi::CUgraphNode node, abi::CUgraph graph) const;

  abi::CUgraph graph_ = nullptr;
  const unsigned long long flags_;
  std::size_t nodes_ = 0;
  std::string whole_;
  bool all_listed_ = true;
  bool listed_ = false;
  std::vector<GraphKernel> kernels_;
  std::shared_ptr<const GraphNames> names_;
  std::shared_ptr<const GraphTallies> tallies_;
  std::set<abi::CUgraphNode> disabled_;                    // of the copy
  std::map<abi::CUgraphNode, abi::CUgraphNode> replaced_;  // nodes that stand where the copy of one was
};

}  // namespace kerncap::interpose::cuda
