// The program's launches of graphs while a capture is wanted: their kernels are counted, and the launch that
// holds the wanted one is made in three pieces, that kernel alone in the middle.
#pragma once

#include <cstdint>
#include <memory>

#include "abi/cuda_graph.h"
#include "interpose/cuda/kept_graph.h"
#include "interpose/cuda/sampling.h"

namespace kerncap::interpose::cuda {

struct Process;

// For what takes the driver's cuGraphLaunch over. To be called in place of it, before it; true: the launch
// has been made, *result is what the program is to be told, and the driver's function must not be called.
// `per_thread`: of cuGraphLaunch_ptsz.
bool launch_graph_instead(abi::CUgraphExec exec, abi::CUstream stream, bool per_thread,
                          abi::CUresult* result);

// Around the driver's function, where that is hooked: counts the kernels that the launch runs, unless
// launch_graph_instead() has done so.
class CountedGraphLaunch {
 public:
  CountedGraphLaunch(Process& process, abi::CUgraphExec exec, abi::CUstream stream, bool per_thread);
  void end(abi::CUresult result);

 private:
  Process& process_;
  std::shared_ptr<const GraphTallies> counted_;
  Sampling::Timed timed_ = Sampling::Timed::as_it_is;
};

// As CUPTI tells of one, where the call cannot be replaced any more.
void graph_launch_begins(Process& process, abi::CUgraphExec exec, abi::CUstream stream,
                         std::uint32_t correlation);
// One that kerncap makes itself.
void own_graph_launch_begins(Process& process, std::uint32_t correlation);

}  // namespace kerncap::interpose::cuda
