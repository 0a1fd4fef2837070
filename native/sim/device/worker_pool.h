// Host threads that outlive dispatches, for the workgroups of whatever dispatch wants help.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kerncap::sim {

class WorkerPool {
 public:
  explicit WorkerPool(unsigned threads);  // started at the first submit
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  [[nodiscard]] unsigned size() const { return wanted_; }
  // Runs `task` on some thread, sooner or later. Tasks must not wait for one another.
  void submit(std::function<void()> task);

 private:
  void work();
  const unsigned wanted_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
};

}  // namespace kerncap::sim
