// The program's executable graphs.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "interpose/cuda/kept_graph.h"

namespace kerncap::interpose::cuda {

class Graphs {
 public:
  void instantiated(abi::CUgraphExec exec, abi::CUgraph graph, unsigned long long flags);
  void updated(abi::CUgraphExec exec, abi::CUgraph graph);
  void destroyed(abi::CUgraphExec exec);
  // Null where its instantiation was not seen.
  std::shared_ptr<KeptGraph> find(abi::CUgraphExec exec) const;

 private:
  // Of all copies. The driver may take a kilobyte or more for each.
  static constexpr std::size_t kMostNodes = 1u << 18;
  struct Kept {
    std::shared_ptr<KeptGraph> graph;
    std::size_t nodes = 0;
  };
  std::size_t room() const;
  void keep(abi::CUgraphExec exec, std::shared_ptr<KeptGraph> graph);

  mutable std::mutex mutex_;
  std::unordered_map<abi::CUgraphExec, Kept> by_exec_;
  std::size_t nodes_ = 0;
};

}  // namespace kerncap::interpose::cuda
