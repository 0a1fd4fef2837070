#include "replay/range_set.h"

#include <algorithm>

namespace kerncap::replay {
namespace {

void append_merged(std::vector<Range>& out, const Range& next, std::uint64_t gap) {
  if (next.bytes == 0) return;
  if (!out.empty() && next.base <= out.back().end() + gap) {
    out.back().bytes = std::max(out.back().end(), next.end()) - out.back().base;
  } else {
    out.push_back(next);
  }
}

}  // namespace

RangeSet::RangeSet(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.base < b.base; });
  for (const Range& range : ranges) append_merged(ranges_, range, 0);
}

void RangeSet::unite(const RangeSet& other) {
  if (other.empty()) return;
  std::vector<Range> merged;
  merged.reserve(ranges_.size() + other.ranges_.size());
  std::size_t i = 0, j = 0;
  while (i < ranges_.size() || j < other.ranges_.size()) {
    const bool mine =
        j == other.ranges_.size() || (i < ranges_.size() && ranges_[i].base <= other.ranges_[j].base);
    append_merged(merged, mine ? ranges_[i++] : other.ranges_[j++], 0);
  }
  ranges_ = std::move(merged);
}

RangeSet RangeSet::minus(const RangeSet& other) const {
  RangeSet out;
  std::size_t j = 0;
  for (const Range& range : ranges_) {
    std::uint64_t at = range.base;
    while (j < other.ranges_.size() && other.ranges_[j].end() <= at) ++j;
    for (std::size_t k = j; k < other.ranges_.size() && other.ranges_[k].base < range.end(); ++k) {
      const Range& cut = other.ranges_[k];
      if (cut.base > at) out.ranges_.push_back({at, cut.base - at});
      at = std::max(at, cut.end());
    }
    if (at < range.end()) out.ranges_.push_back({at, range.end() - at});
  }
  return out;
}

RangeSet RangeSet::intersect(const RangeSet& other) const {
  RangeSet out;
  std::size_t i = 0, j = 0;
  while (i < ranges_.size() && j < other.ranges_.size()) {
    const Range &a = ranges_[i], &b = other.ranges_[j];
    const std::uint64_t begin = std::max(a.base, b.base), end = std::min(a.end(), b.end());
    if (begin < end) out.ranges_.push_back({begin, end - begin});
    if (a.end() < b.end()) {
      ++i;
    } else {
      ++j;
    }
  }
  return out;
}

RangeSet RangeSet::coarsen(std::uint64_t gap) const {
  RangeSet out;
  for (const Range& range : ranges_) append_merged(out.ranges_, range, gap);
  return out;
}

std::uint64_t RangeSet::bytes() const {
  std::uint64_t total = 0;
  for (const Range& range : ranges_) total += range.bytes;
  return total;
}

}  // namespace kerncap::replay
