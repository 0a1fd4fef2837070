#include "interpose/common/pointer_scan.h"

#include <algorithm>

namespace kerncap::interpose {

PointerScan::PointerScan(std::vector<AddressRange> ranges) : ranges_(std::move(ranges)) {
  if (ranges_.empty()) return;
  low_ = ranges_.front().begin;
  span_ = ranges_.back().end - low_;
}

std::size_t PointerScan::find(std::uint64_t address) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](std::uint64_t value, const AddressRange& r) { return value < r.begin; });
  if (after == ranges_.begin() || std::prev(after)->end <= address) return npos;
  return static_cast<std::size_t>(std::prev(after) - ranges_.begin());
}

}  // namespace kerncap::interpose
