#include "sim/hsa/queue_registry.h"

#include "sim/hsa/queue.h"

namespace kerncap::sim::rt {

void QueueRegistry::add(std::shared_ptr<Queue> queue) {
  std::lock_guard lock(mutex_);
  const abi::hsa_queue_t* handle = queue->handle();
  queues_[handle] = std::move(queue);
}

std::shared_ptr<Queue> QueueRegistry::find(const abi::hsa_queue_t* handle) const {
  std::lock_guard lock(mutex_);
  auto it = queues_.find(handle);
  return it == queues_.end() ? nullptr : it->second;
}

std::shared_ptr<Queue> QueueRegistry::remove(const abi::hsa_queue_t* handle) {
  std::lock_guard lock(mutex_);
  auto it = queues_.find(handle);
  if (it == queues_.end()) return nullptr;
  std::shared_ptr<Queue> queue = std::move(it->second);
  queues_.erase(it);
  return queue;
}

void QueueRegistry::destroy_all() {
  std::map<const abi::hsa_queue_t*, std::shared_ptr<Queue>> queues;
  {
    std::lock_guard lock(mutex_);
    queues.swap(queues_);
  }
  for (auto& [handle, queue] : queues) queue->inactivate();
}

}  // namespace kerncap::sim::rt
