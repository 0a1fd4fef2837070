// All that the CUDA interposer knows of the process it is in.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "interpose/common/code_store.h"
#include "interpose/cuda/activity.h"
#include "interpose/cuda/controller.h"
#include "interpose/cuda/driver.h"
#include "interpose/cuda/graphs.h"
#include "interpose/cuda/kernels.h"
#include "interpose/cuda/memory.h"
#include "interpose/cuda/sampling.h"
#include "live/control_file.h"
#include "live/live_file.h"

namespace kerncap::interpose::cuda {

struct Process {
  Process(std::unique_ptr<live::ControlFile> control_file, std::unique_ptr<live::LiveFile> live_file,
          const std::string& session);

  std::unique_ptr<live::ControlFile> control;
  std::unique_ptr<live::LiveFile> live;
  CodeStore code;
  Kernels kernels;
  Memory memory;
  Activity activity;
  Sampling sampling;
  Graphs graphs;
  Controller captures;
  std::string runtime;
  // How many streams may be being recorded into graphs: only then do launches have to be asked about.
  std::atomic<unsigned> recordings{0};

  void start();
  // Whether the stream is being recorded into a graph: a launch into it runs nothing now. `per_thread`: where
  // null means the thread's own default stream.
  [[nodiscard]] bool is_recorded(abi::CUstream stream, bool per_thread) const {
    return recordings.load(std::memory_order_relaxed) != 0 && records(stream_handle(stream, per_thread));
  }
  // Launches of one kernel; returns which of its launches the last of them is, from 1.
  std::uint64_t count(const Kernel& kernel, const LaunchShape& shape, std::uint64_t launches = 1);
  // They came to nothing.
  void withdraw(const Kernel& kernel, std::uint64_t launches = 1);
  // Flushes statistics, within limits, and marks the process as ended.
  void finish();
  // In the statistics, for the front end; warn() also prints `kerncap: TEXT` on stderr.
  void note(const std::string& text);
  void warn(const std::string& text);

 private:
  [[nodiscard]] bool records(abi::CUstream stream) const;
  void housekeeping();

  std::atomic<bool> stopping_{false};
  std::thread housekeeper_;
};

// Null while the interposer is inert: no valid session, or the process ends.
Process* process();
// Makes the Process if KERNCAP_SESSION names a session and the driver can be watched.
void attach();

// Why every launch is watched.
enum Watching : unsigned {
  kForRequest = 1,      // a capture is wanted: the nth launch has to be met
  kForNames = 2,        // a name alone does not tell which kernel it is
  kWithoutRecords = 4,  // CUPTI gives none
  kForGraphs = 8,       // records of graphs that are not counted as they are launched have to be known
};
// CUPTI's callbacks for launches, and for those of graphs where these are hooked; elsewhere they are always
// on.
void watch_launches(Watching why, bool enable);

// The callbacks of the driver's calls (callbacks.cpp). False, and why, where CUPTI refuses.
bool subscribe(std::string* why);
// Launches of graphs are hooked.
void graph_launches_are_hooked();
// Calls that move memory: told of only while a capture is under way, since each costs the program a little.
void watch_copies(bool enable);

}  // namespace kerncap::interpose::cuda
