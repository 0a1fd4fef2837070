#include "sim/hip/allocations.h"

#include <iterator>

namespace kerncap::sim::hip {

void Allocations::add(const Allocation& allocation) {
  const std::lock_guard lock(mutex_);
  by_base_[reinterpret_cast<std::uintptr_t>(allocation.base)] = allocation;
}

std::optional<Allocation> Allocations::take(const void* base, std::optional<Allocation::Kind> kind) {
  const std::lock_guard lock(mutex_);
  const auto at = by_base_.find(reinterpret_cast<std::uintptr_t>(base));
  if (at == by_base_.end() || (kind && at->second.kind != *kind)) return std::nullopt;
  const Allocation taken = at->second;
  by_base_.erase(at);
  return taken;
}

std::optional<Allocation> Allocations::find(const void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  const auto after = by_base_.upper_bound(value);
  if (after == by_base_.begin()) return std::nullopt;
  const Allocation& candidate = std::prev(after)->second;
  if (value - reinterpret_cast<std::uintptr_t>(candidate.base) >= candidate.bytes) return std::nullopt;
  return candidate;
}

bool Allocations::covers(const void* address, std::size_t bytes) {
  const auto found = find(address);
  if (!found) return false;
  const auto offset =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(found->base);
  return bytes <= found->bytes - offset;
}

// Never destroyed: programs free memory from their own static destructors.
Allocations& allocations() {
  static auto* instance = new Allocations;
  return *instance;
}

}  // namespace kerncap::sim::hip
