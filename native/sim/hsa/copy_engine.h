// The DMA engine of a GPU: a thread that moves memory once the signals a job depends on are zero.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "abi/hsa.h"
#include "sim/hsa/signal.h"

namespace kerncap::sim::rt {

class Runtime;
struct Agent;

class CopyEngine {
 public:
  CopyEngine(Runtime* runtime, Agent* agent) : runtime_(runtime), agent_(agent) {}
  ~CopyEngine();

  // Runs `work` when every signal is 0, then takes 1 off `completion` (may be null). A signal that turns
  // negative means an error: the work is left out and the completion signal set to that value. `bytes` are
  // what the job's simulated duration is computed from.
  void enqueue(std::vector<SignalRef> dependencies, SignalRef completion, std::uint64_t bytes,
               std::function<void()> work);

 private:
  struct Job {
    std::vector<SignalRef> dependencies;
    SignalRef completion;
    std::uint64_t bytes;
    std::function<void()> work;
  };

  void loop();
  void run(Job& job);

  Runtime* runtime_;
  Agent* agent_;
  std::mutex mutex_;
  std::vector<Job> added_;
  bool stopping_ = false;
  std::thread thread_;
  std::vector<Job> waiting_;  // the thread's own
  std::uint64_t last_end_ticks_ = 0;
};

}  // namespace kerncap::sim::rt
