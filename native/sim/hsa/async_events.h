// The thread that calls back when signals reach a value, runs deferred functions, and serves intercept
// queues.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "abi/hsa.h"
#include "sim/hsa/signal.h"

namespace kerncap::sim::rt {

class Runtime;

class AsyncEvents {
 public:
  explicit AsyncEvents(Runtime* runtime) : runtime_(runtime) {}
  ~AsyncEvents() { stop(); }

  void add_handler(abi::hsa_signal_t signal, abi::hsa_signal_condition_t condition, std::int64_t compare,
                   abi::hsa_amd_signal_handler handler, void* arg);
  void run_soon(std::function<void()> function);
  void stop();

 private:
  struct Handler {
    SignalRef signal;
    abi::hsa_signal_condition_t condition;
    std::int64_t compare;
    abi::hsa_amd_signal_handler callback;
    void* arg;
  };

  void start_once();
  void loop();

  Runtime* runtime_;
  std::mutex mutex_;
  std::vector<Handler> added_;  // by other threads, not yet in handlers_
  std::vector<std::function<void()>> functions_;
  bool stopping_ = false;
  std::thread thread_;
  std::vector<Handler> handlers_;  // the thread's own
};

}  // namespace kerncap::sim::rt
