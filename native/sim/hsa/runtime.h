// The runtime between hsa_init and the last hsa_shut_down: agents, memory, signals, queues, code.
//
// There is no lock over it all. Each part has its own, held only for look-ups; nothing that waits (a
// dispatch, a copy, a callback into the program) holds one.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "abi/hsa.h"
#include "sim/hsa/agent.h"
#include "sim/hsa/async_events.h"
#include "sim/hsa/clock.h"
#include "sim/hsa/config.h"
#include "sim/hsa/loader.h"
#include "sim/hsa/memory.h"
#include "sim/hsa/queue_registry.h"
#include "sim/hsa/signal.h"
#include "sim/hsa/svm.h"
#include "sim/hsa/vmem.h"

namespace kerncap::sim::rt {

class Runtime {
 public:
  // Null before hsa_init and after the last hsa_shut_down. In a forked child: null until it calls hsa_init
  // itself.
  static Runtime* get();
  static abi::hsa_status_t acquire();
  static abi::hsa_status_t release();

  explicit Runtime(const Config& config);
  ~Runtime();

  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Agent>>& agents() const { return agents_; }
  [[nodiscard]] Agent* cpu() const { return agents_.front().get(); }
  [[nodiscard]] Agent* find_agent(abi::hsa_agent_t handle) const;
  [[nodiscard]] Agent* find_gpu(abi::hsa_agent_t handle) const;
  [[nodiscard]] Pool* find_pool(std::uint64_t handle) const;

  // Makes a range accessible to every GPU for as long as the runtime lives.
  void share_with_gpus(std::uint64_t base, std::uint64_t size, const char* kind);

  // False while tools are being loaded: ROCr looks for virtual memory support only after that.
  [[nodiscard]] bool vmem_ready() const { return vmem_ready_.load(std::memory_order_acquire); }

  void add_event_handler(abi::hsa_amd_system_event_callback_t callback, void* data);
  // Whether a handler took it.
  bool raise_event(const abi::hsa_amd_event_t& event);

  Clock clock;
  SignalPool signals;
  Memory memory;
  VirtualMemory vmem;
  Svm svm;
  AsyncEvents events;
  Loader loader;
  QueueRegistry queues;
  std::atomic<bool> profile_copies{false};

 private:
  const Config config_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::atomic<bool> vmem_ready_{false};
  std::mutex handlers_mutex_;
  std::vector<std::pair<abi::hsa_amd_system_event_callback_t, void*>> event_handlers_;
};

// `kerncap: ` and the message, on stderr.
void complain(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace kerncap::sim::rt

// At the top of most implementations: no runtime, no service.
#define KERNCAP_SIM_RUNTIME(name)                  \
  auto* name = ::kerncap::sim::rt::Runtime::get(); \
  if (name == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED
