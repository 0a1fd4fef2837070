// The memory a simulated dispatch may touch. A simulated GPU uses the process's own
// addresses; what keeps a wild access from corrupting the process is this table, which
// the runtime (sim/hsa) fills and the interpreter consults before each access.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

namespace kerncap::sim {

struct Allocation {
  std::uint64_t base = 0;
  std::uint64_t size = 0;  // bytes
  bool writable = true;
  // "device", "fine", "kernarg", "host", "code", "vmem", "queue", "signal" ...: for messages only.
  const char* kind = "device";

  [[nodiscard]] std::uint64_t end() const { return base + size; }
};

class AddressSpace {
 public:
  // Overlapping an existing allocation is refused (returns false).
  bool add(const Allocation& allocation);
  bool remove(std::uint64_t base);

  // The allocation that holds `address`.
  [[nodiscard]] std::optional<Allocation> find(std::uint64_t address) const;
  // The allocation whose edge is nearest to `address`, for fault messages.
  [[nodiscard]] std::optional<Allocation> nearest(std::uint64_t address) const;

  // Grows with every add and remove. A wave that caches a range compares this first.
  [[nodiscard]] std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Allocation> by_base_;
  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace kerncap::sim
