// One piece of memory that the program got from a runtime.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot/records.h"

namespace kerncap::interpose {

struct Allocation {
  std::uint64_t address = 0;  // as a GPU sees it
  std::uint64_t bytes = 0;
  std::uint64_t host_address = 0;  // where the program sees it, if it differs or is the program's own; else 0
  snapshot::RegionKind kind = snapshot::RegionKind::device;
  std::uint32_t pool_flags = 0;
  std::uint64_t owner = 0;            // agent handle; 0: none in particular
  std::vector<std::uint64_t> agents;  // that were given access beyond the owner
  bool everyone = false;              // accessible to every agent without asking
  std::string refusal;                // not empty: cannot be captured, and why

  [[nodiscard]] std::uint64_t end() const { return address + bytes; }
  // Whether the process itself can read it at host_address (or address) like any memory of its own.
  [[nodiscard]] bool host_memory() const;
  [[nodiscard]] bool accessible_to(std::uint64_t agent) const;
};

}  // namespace kerncap::interpose
