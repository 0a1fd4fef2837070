// What the program has allocated, so that a pointer can be told from another and freed the right way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "sim/hip/error.h"

namespace kerncap::sim::hip {

struct Allocation {
  enum class Kind { device, host, registered, managed, async, variable };
  Kind kind = Kind::device;
  void* base = nullptr;         // as the program sees it
  void* device_base = nullptr;  // as the device sees it
  std::size_t bytes = 0;
  int device = 0;
  unsigned flags = 0;
  std::size_t mapped = 0;  // managed: bytes of the mapping, or 0 if it came from a pool
};

class Allocations {
 public:
  void add(const Allocation& allocation);
  // The one that begins at `base`, taken out.
  std::optional<Allocation> take(const void* base, std::optional<Allocation::Kind> kind = std::nullopt);
  // The one that holds `address`.
  std::optional<Allocation> find(const void* address);
  // Whether one allocation holds all of the range.
  bool covers(const void* address, std::size_t bytes);

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, Allocation> by_base_;
};

Allocations& allocations();

}  // namespace kerncap::sim::hip
