#include "sim/device/worker_pool.h"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace kerncap::sim {

WorkerPool::WorkerPool(unsigned threads) : wanted_(threads) {}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void WorkerPool::submit(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (threads_.size() < wanted_) {
      // The program's signals are for its own threads.
      sigset_t all, old;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &old);
      threads_.emplace_back([this] { work(); });
      pthread_sigmask(SIG_SETMASK, &old, nullptr);
    }
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

}  // namespace kerncap::sim
