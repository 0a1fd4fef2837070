#include "replay/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace kerncap::replay {

void parallel_for(std::uint64_t count, const std::function<void(std::uint64_t)>& task) {
  std::atomic<std::uint64_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  auto work = [&] {
    try {
      for (std::uint64_t i = next++; i < count; i = next++) task(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (failure == nullptr) failure = std::current_exception();
      next = count;
    }
  };
  const std::uint64_t threads =
      std::min<std::uint64_t>(count, std::max(1u, std::min(16u, std::thread::hardware_concurrency())));
  std::vector<std::thread> pool;
  for (std::uint64_t i = 1; i < threads; ++i) pool.emplace_back(work);
  if (count > 0) work();
  for (std::thread& thread : pool) thread.join();
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace kerncap::replay
