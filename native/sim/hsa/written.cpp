#include "sim/hsa/written.h"

#include <algorithm>

namespace kerncap::sim::rt {

WrittenRanges& WrittenRanges::instance() {
  static auto* ranges = new WrittenRanges;  // queue threads may outlive main
  return *ranges;
}

void WrittenRanges::add(const std::vector<WrittenRange>& ranges) {
  std::lock_guard lock(mutex_);
  ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
  std::sort(ranges_.begin(), ranges_.end(), [](const auto& a, const auto& b) { return a.base < b.base; });
  std::vector<WrittenRange> merged;
  for (const WrittenRange& range : ranges_) {
    if (!merged.empty() && range.base <= merged.back().base + merged.back().size)
      merged.back().size = std::max(merged.back().size, range.base + range.size - merged.back().base);
    else
      merged.push_back(range);
  }
  ranges_ = std::move(merged);
}

std::size_t WrittenRanges::take(kerncap_sim_range* out, std::size_t capacity) {
  std::lock_guard lock(mutex_);
  const std::size_t count = ranges_.size();
  for (std::size_t i = 0; i < std::min(count, capacity); ++i) out[i] = {ranges_[i].base, ranges_[i].size};
  if (count <= capacity) ranges_.clear();
  return count;
}

}  // namespace kerncap::sim::rt
