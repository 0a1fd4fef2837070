#include "interpose/cuda/graph_launch.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "interpose/common/capture_steps.h"
#include "interpose/cuda/capture.h"
#include "interpose/cuda/driver.h"
#include "interpose/cuda/graph_pieces.h"
#include "interpose/cuda/hooked_launches.h"
#include "interpose/cuda/process.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

// The graph launch that this thread is about to make, or in.
struct InGraphLaunch {
  bool looked_at = false;     // by launch_graph_instead()
  std::uint32_t kernels = 0;  // that were counted
  std::shared_ptr<const GraphNames> names;
  bool uncounted = false;  // it is not known what it runs
};
thread_local InGraphLaunch in_launch;

// One of kerncap's own, until CUPTI tells of it.
struct OwnLaunch {
  std::uint32_t kernels = 0;
  bool wanted = false;  // the kernel that is captured
};
thread_local const OwnLaunch* own_launch = nullptr;

struct Looked {
  std::uint32_t counted = 0;
  Capture* capture = nullptr;
  const GraphKernel* wanted = nullptr;
};

// Counts the kernels of a launch; the wanted one, if it is among them, is claimed.
Looked look(Process& process, KeptGraph& graph, CUstream stream, bool claim) {
  Looked looked;
  std::unordered_map<const Kernel*, std::uint64_t> uncounted;
  for (GraphKernel& kernel : graph.kernels(process.kernels)) {
    kernel.launch.stream = stream;
    std::uint64_t nth = 0;
    if (graph.all_listed()) {
      nth = process.count(*kernel.kernel, kernel.launch);
      ++looked.counted;
    } else {  // their records count them, with those that are not listed
      nth = kernel.kernel->calls->all.load(std::memory_order_relaxed) + ++uncounted[kernel.kernel];
    }
    if (!claim || looked.capture != nullptr || !process.captures.armed()) continue;
    looked.capture = process.captures.claim(kernel.launch, *kernel.kernel, nth);
    if (looked.capture != nullptr) looked.wanted = &kernel;
  }
  return looked;
}

std::string refusal(const std::string& why) {
  return "the dispatch is part of a graph launch (cuGraphLaunch) that kerncap cannot take apart: " + why;
}

CUresult launch(const GraphPiece& piece, CUstream stream, bool wanted) {
  if (piece.empty()) return CUDA_SUCCESS;
  const OwnLaunch own{piece.kernels, wanted};
  own_launch = &own;
  const CUresult result = graph_driver().cuGraphLaunch(piece.exec, stream);
  own_launch = nullptr;
  return result;
}

// What the program's launch does, in three launches, with the capture between them. False: none was made.
bool run_pieces(const GraphPieces& pieces, CUstream stream, Capture& capture, CUresult* result) {
  *result = launch(pieces.before, stream, false);
  if (*result != CUDA_SUCCESS) {
    capture.refuse(refusal("launching what comes before it gave " + error_text(*result)));
    return false;
  }
  capture.before();
  *result = launch(pieces.kernel, stream, true);
  capture.changed(*result);
  if (!capture.ends_program()) {
    const CUresult of_rest = launch(pieces.behind, stream, false);
    if (*result == CUDA_SUCCESS) *result = of_rest;
    // Two launches of one executable graph never overlap, whatever the streams: neither may this one and the
    // program's next.
    try {
      capture.settle("what follows the dispatch in its graph did not complete");
    } catch (const std::exception&) {  // the capture is not concerned
    }
  }
  capture.end();
  return true;
}

std::unique_ptr<const GraphPieces> take_apart(const KeptGraph& graph, const GraphKernel& wanted) {
  if (!graph.whole().empty()) throw Refused(refusal(graph.whole()));
  try {
    return std::make_unique<const GraphPieces>(graph, wanted);
  } catch (const Refused& error) {
    throw Refused(refusal(error.what()));
  }
}

// `result`: null where the launch cannot be replaced. True: it has been.
bool consider(Process& process, CUgraphExec exec, CUstream stream, CUresult* result) {
  const std::shared_ptr<KeptGraph> graph = process.graphs.find(exec);
  if (graph == nullptr || process.is_recorded(stream, false)) return false;
  const std::lock_guard lock(graph->mutex);
  const OwnCalls own;
  const bool claim = result != nullptr || !in_launch.looked_at;
  const Looked looked = look(process, *graph, stream, claim);
  in_launch.kernels = looked.counted;
  in_launch.names = graph->names();
  if (looked.capture == nullptr) return false;
  try {
    if (result == nullptr) throw Refused(refusal("calls of the driver cannot be replaced in this process"));
    const std::unique_ptr<const GraphPieces> pieces = take_apart(*graph, *looked.wanted);
    // The graph may still run from the launch before.
    looked.capture->settle("what was submitted to the device before the launch did not complete");
    return run_pieces(*pieces, stream, *looked.capture, result);
  } catch (const Cancelled&) {
    looked.capture->refuse("cancelled", live::CaptureState::cancelled);
  } catch (const std::exception& error) {
    looked.capture->refuse(error.what());
  }
  return false;
}

}  // namespace

bool launch_graph_instead(CUgraphExec exec, CUstream stream, bool per_thread, CUresult* result) {
  Process* p = process();
  if (p == nullptr || OwnCalls::active()) return false;
  if (p->captures.is_active()) p->captures.wait_while_active();
  p->captures.poll();
  in_launch = {.looked_at = true, .kernels = 0, .names = nullptr, .uncounted = false};
  if (!p->captures.armed() || !consider(*p, exec, stream_handle(stream, per_thread), result)) return false;
  in_launch = {};
  return true;
}

CountedGraphLaunch::CountedGraphLaunch(Process& process, CUgraphExec exec, CUstream stream, bool per_thread)
    : process_(process) {
  if (in_launch.kernels != 0 || process.is_recorded(stream, per_thread)) return;
  std::shared_ptr<const GraphTallies> tallies;
  if (const std::shared_ptr<KeptGraph> graph = process.graphs.find(exec)) {
    const std::lock_guard lock(graph->mutex);
    if (graph->tallies() == nullptr) {
      const OwnCalls own;
      graph->kernels(process.kernels);
    }
    if (graph->all_listed()) tallies = graph->tallies();
    in_launch.names = graph->names();
  }
  if (tallies == nullptr) {
    in_launch.uncounted = true;
    process.sampling.hold(Sampling::kForGraphs, true);
    watch_launches(kForGraphs, true);
    return;
  }
  std::uint64_t kernels = 0, long_ones = 0, least = UINT64_MAX;
  for (const GraphTally& tally : *tallies) {
    const std::uint64_t last = process.count(*tally.kernel, tally.shape, tally.launches);
    least = std::min(least, last - tally.launches + 1);
    kernels += tally.launches;
    if (tally.kernel->takes_long.load(std::memory_order_relaxed)) long_ones += tally.launches;
  }
  if (kernels == 0) return;
  in_launch.kernels = static_cast<std::uint32_t>(kernels);
  counted_ = std::move(tallies);
  timed_ = process.sampling.graph_begins(kernels, long_ones, least);
}

void CountedGraphLaunch::end(CUresult result) {
  in_launch = {};
  if (timed_ != Sampling::Timed::as_it_is) process_.sampling.ends(timed_);
  if (result == CUDA_SUCCESS || counted_ == nullptr) return;
  for (const GraphTally& tally : *counted_) process_.withdraw(*tally.kernel, tally.launches);
}

void graph_launch_begins(Process& process, CUgraphExec exec, CUstream stream, std::uint32_t correlation) {
  process.captures.poll();
  if (launches_are_hooked()) {
    const InGraphLaunch launch = std::exchange(in_launch, {});
    if (launch.uncounted) process.activity.graph_uncounted(correlation);
    // That records are of launches that were counted goes without saying; whose they are, where names tell.
    if (process.sampling.on() && (process.captures.armed() || process.kernels.names_repeat()))
      process.activity.graph_launched(correlation, launch.kernels, launch.names);
    return;
  }
  // Where names do not tell which kernel a record is of, the launches are counted, as direct ones are.
  // A request may also have come since launch_graph_instead().
  if (in_launch.kernels == 0 && (process.captures.armed() || process.kernels.names_repeat()))
    consider(process, exec, stream, nullptr);
  InGraphLaunch launch = std::exchange(in_launch, {});
  process.activity.graph_launched(correlation, launch.kernels, std::move(launch.names));
}

void own_graph_launch_begins(Process& process, std::uint32_t correlation) {
  if (own_launch == nullptr) return;
  process.activity.graph_launched(correlation, own_launch->kernels, nullptr);
  if (own_launch->wanted) process.activity.watch(correlation);
}

}  // namespace kerncap::interpose::cuda
