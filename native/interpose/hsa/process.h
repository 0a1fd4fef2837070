// All that the interposer knows of the process it is in.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "interpose/common/code_store.h"
#include "interpose/hsa/agents.h"
#include "interpose/hsa/allocations.h"
#include "interpose/hsa/capture_controller.h"
#include "interpose/hsa/kernel_registry.h"
#include "interpose/hsa/pending_copies.h"
#include "interpose/hsa/queue.h"
#include "interpose/hsa/timing.h"
#include "live/control_file.h"
#include "live/live_file.h"

namespace kerncap::interpose {

struct Process {
  Process(std::unique_ptr<live::ControlFile> control_file, std::unique_ptr<live::LiveFile> live_file,
          const std::string& session);

  std::unique_ptr<live::ControlFile> control;
  std::unique_ptr<live::LiveFile> live;
  const bool timing;
  Agents agents;
  RuntimeInfo runtime;
  CodeStore code;
  KernelRegistry kernels;
  Allocations allocations;
  PendingCopies copies;
  TimeSink sink;
  SignalProxies proxies;
  Queues queues;
  CaptureController captures;

  // Agents and what is loaded already; not possible before hsa_init has returned. Cheap once done.
  void prepare();

  // A row for a kernel that has none.
  std::uint32_t first_dispatch(Kernel& kernel);
  // One dispatch packet; returns which of the kernel's it is, from 1.
  std::uint64_t count(const Packet& packet, Kernel* kernel, std::uint32_t row);

  // False when it is no intercept queue.
  bool new_queue(abi::hsa_queue_t* queue, const AgentInfo& agent);
  // Flushes statistics, within limits, and marks the process as ended.
  void finish();
  // In the statistics, for the front end; warn() also prints `kerncap: TEXT` on stderr.
  void note(const std::string& text);
  void warn(const std::string& text);

 private:
  void housekeeping();

  std::once_flag prepared_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> housekeeper_started_{false};
  std::thread housekeeper_;
  std::mutex rows_mutex_;
};

// Null while the interposer is inert: no valid session, or after the runtime is gone.
Process* process();

// Called when the runtime's tables are known. Makes the Process if KERNCAP_SESSION names a session.
bool attach();
// The runtime is going away, or the process ends.
void detach();

}  // namespace kerncap::interpose
