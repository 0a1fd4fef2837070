#include "interpose/cuda/graphs.h"

#include <utility>

#include "interpose/cuda/driver.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names

void Graphs::instantiated(CUgraphExec exec, CUgraph graph, unsigned long long flags) {
  keep(exec, std::make_shared<KeptGraph>(graph, flags, room()));
}

void Graphs::updated(CUgraphExec exec, CUgraph graph) {
  const std::shared_ptr<KeptGraph> before = find(exec);
  if (before == nullptr) return;
  const std::lock_guard lock(before->mutex);
  auto after = std::make_shared<KeptGraph>(graph, before->flags(), room() + before->nodes());
  if (!before->all_enabled()) after->give_up("it was updated while some of its nodes were disabled");
  keep(exec, std::move(after));
}

void Graphs::destroyed(CUgraphExec exec) { keep(exec, nullptr); }

std::shared_ptr<KeptGraph> Graphs::find(CUgraphExec exec) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_exec_.find(exec);
  return found != by_exec_.end() ? found->second.graph : nullptr;
}

std::size_t Graphs::room() const {
  const std::lock_guard lock(mutex_);
  return nodes_ < kMostNodes ? kMostNodes - nodes_ : 0;
}

void Graphs::keep(CUgraphExec exec, std::shared_ptr<KeptGraph> graph) {
  Kept before;  // goes without the lock
  const std::lock_guard lock(mutex_);
  const auto found = by_exec_.find(exec);
  if (found != by_exec_.end()) {
    before = std::move(found->second);
    nodes_ -= before.nodes;
    by_exec_.erase(found);
  }
  if (graph == nullptr) return;
  const std::size_t nodes = graph->nodes();
  nodes_ += nodes;
  by_exec_[exec] = {std::move(graph), nodes};
}

}  // namespace kerncap::interpose::cuda
