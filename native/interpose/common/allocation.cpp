#include "interpose/common/allocation.h"

#include <algorithm>

namespace kerncap::interpose {

using snapshot::RegionKind;

bool Allocation::host_memory() const {
  return kind == RegionKind::host || kind == RegionKind::kernarg || kind == RegionKind::registered ||
         kind == RegionKind::managed;
}

bool Allocation::accessible_to(std::uint64_t agent) const {
  return everyone || owner == agent || std::find(agents.begin(), agents.end(), agent) != agents.end();
}

}  // namespace kerncap::interpose
