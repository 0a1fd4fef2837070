#include "sim/device/address_space.h"

namespace kerncap::sim {

bool AddressSpace::add(const Allocation& allocation) {
  if (allocation.size == 0 || allocation.end() < allocation.base) return false;
  const std::unique_lock lock(mutex_);
  const auto next = by_base_.lower_bound(allocation.base);
  if (next != by_base_.end() && next->first < allocation.end()) return false;
  if (next != by_base_.begin() && std::prev(next)->second.end() > allocation.base) return false;
  by_base_.emplace_hint(next, allocation.base, allocation);
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

bool AddressSpace::remove(std::uint64_t base) {
  const std::unique_lock lock(mutex_);
  if (by_base_.erase(base) == 0) return false;
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

std::optional<Allocation> AddressSpace::find(std::uint64_t address) const {
  const std::shared_lock lock(mutex_);
  auto next = by_base_.upper_bound(address);
  if (next == by_base_.begin()) return std::nullopt;
  const Allocation& found = std::prev(next)->second;
  if (address >= found.end()) return std::nullopt;
  return found;
}

std::optional<Allocation> AddressSpace::nearest(std::uint64_t address) const {
  const std::shared_lock lock(mutex_);
  if (by_base_.empty()) return std::nullopt;
  const auto next = by_base_.upper_bound(address);
  if (next == by_base_.begin()) return next->second;
  const Allocation& before = std::prev(next)->second;
  if (next == by_base_.end() || address < before.end()) return before;
  return address - (before.end() - 1) <= next->first - address ? before : next->second;
}

}  // namespace kerncap::sim
