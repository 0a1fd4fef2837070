// Sets of bytes of the address space, as sorted ranges that neither touch nor overlap.
#pragma once

#include <cstdint>
#include <vector>

namespace kerncap::replay {

struct Range {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] std::uint64_t end() const { return base + bytes; }
  bool operator==(const Range&) const = default;
};

class RangeSet {
 public:
  RangeSet() = default;
  explicit RangeSet(std::vector<Range> ranges);  // in any order, overlapping or not

  void unite(const RangeSet& other);
  [[nodiscard]] RangeSet minus(const RangeSet& other) const;
  [[nodiscard]] RangeSet intersect(const RangeSet& other) const;
  // Ranges that are less than `gap` bytes apart become one: fewer, larger copies.
  [[nodiscard]] RangeSet coarsen(std::uint64_t gap) const;

  [[nodiscard]] const std::vector<Range>& ranges() const& { return ranges_; }
  const std::vector<Range>& ranges() const&& = delete;  // would dangle: iterate over the set itself
  [[nodiscard]] auto begin() const { return ranges_.begin(); }
  [[nodiscard]] auto end() const { return ranges_.end(); }
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  void clear() { ranges_.clear(); }
  bool operator==(const RangeSet&) const = default;

 private:
  std::vector<Range> ranges_;
};

}  // namespace kerncap::replay
