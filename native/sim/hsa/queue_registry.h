// The queues that exist.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "abi/hsa.h"

namespace kerncap::sim::rt {

class Queue;

class QueueRegistry {
 public:
  // HIP keeps tables by queue id: ids are unique in the process, and never 0.
  std::uint64_t next_id() { return last_id_.fetch_add(1) + 1; }

  void add(std::shared_ptr<Queue> queue);
  // Null when the handle is no queue's.
  [[nodiscard]] std::shared_ptr<Queue> find(const abi::hsa_queue_t* handle) const;
  // Takes it out, for its caller to destroy.
  std::shared_ptr<Queue> remove(const abi::hsa_queue_t* handle);
  void destroy_all();

 private:
  mutable std::mutex mutex_;
  std::map<const abi::hsa_queue_t*, std::shared_ptr<Queue>> queues_;
  std::atomic<std::uint64_t> last_id_{0};
};

}  // namespace kerncap::sim::rt
