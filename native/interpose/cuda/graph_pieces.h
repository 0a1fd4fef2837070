// The three graphs that do together, one after the other, what a graph of the program does: everything that
// does not wait for one kernel, that kernel, and what waits for it.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "interpose/cuda/kept_graph.h"

namespace kerncap::interpose::cuda {

class GraphPiece {
 public:
  GraphPiece() = default;
  ~GraphPiece();
  GraphPiece(const GraphPiece&) = delete;
  GraphPiece& operator=(const GraphPiece&) = delete;

  // Nothing to run: `exec` is null.
  [[nodiscard]] bool empty() const { return exec == nullptr; }

  abi::CUgraph graph = nullptr;
  abi::CUgraphExec exec = nullptr;
  std::uint32_t kernels = 0;  // that it runs
};

class GraphPieces {
 public:
  // Throws Refused. Nothing of the program is changed.
  GraphPieces(const KeptGraph& whole, const GraphKernel& wanted);

  GraphPiece before, kernel, behind;

 private:
  // The nodes of a copy, by those that they are copies of, embedded graphs included.
  using Twins = std::unordered_map<abi::CUgraphNode, abi::CUgraphNode>;
  static void pair(abi::CUgraph original, abi::CUgraph copy, Twins& twins);
  static void forget(abi::CUgraphNode original, Twins& twins);
  void cut(GraphPiece& piece, bool waiting);
  std::size_t cut(GraphPiece& piece, abi::CUgraph original, std::size_t level, bool waiting, Twins& twins);
  std::uint32_t count_kernels(abi::CUgraphNode node) const;
  void take_kernel();
  void instantiate(GraphPiece& piece) const;

  const KeptGraph& whole_;
  const GraphKernel& wanted_;
};

}  // namespace kerncap::interpose::cuda
