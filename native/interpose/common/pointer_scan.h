// Which regions the words of a piece of memory point into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kerncap::interpose {

struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

class PointerScan {
 public:
  // Sorted by address, none empty, no two overlapping.
  explicit PointerScan(std::vector<AddressRange> ranges);

  // Calls found(index of the range) for words that point into one, each range once a call, words taken at
  // every multiple of `step` (8: as compilers align pointers; 4: packed arguments). `seen` is the caller's
  // own scratch.
  struct Seen {
    std::vector<std::uint32_t> stamp;
    std::uint32_t now = 0;
  };
  template <typename Found>
  void scan(const unsigned char* bytes, std::size_t count, std::size_t step, Seen& seen, Found found) const;

  // Index of the range that holds `address`; npos if none does.
  static constexpr std::size_t npos = ~std::size_t{0};
  [[nodiscard]] std::size_t find(std::uint64_t address) const;

 private:
  std::vector<AddressRange> ranges_;
  std::uint64_t low_ = 0;
  std::uint64_t span_ = 0;
};

template <typename Found>
void PointerScan::scan(const unsigned char* bytes, std::size_t count, std::size_t step, Seen& seen,
                       Found found) const {
  if (ranges_.empty()) return;
  if (seen.stamp.size() != ranges_.size() || ++seen.now == 0) {
    seen.stamp.assign(ranges_.size(), 0);
    seen.now = 1;
  }
  // Pointers come in runs to the same place, and data that is no pointer is mostly outside the span of all
  // ranges.
  std::uint64_t last_begin = 1, last_bytes = 0;
  for (std::size_t at = 0; at + 8 <= count; at += step) {
    std::uint64_t word;
    __builtin_memcpy(&word, bytes + at, sizeof word);
    if (word - low_ >= span_ || word - last_begin < last_bytes) continue;
    const std::size_t index = find(word);
    if (index == npos) continue;
    last_begin = ranges_[index].begin;
    last_bytes = ranges_[index].end - last_begin;
    if (seen.stamp[index] == seen.now) continue;
    seen.stamp[index] = seen.now;
    found(index);
  }
}

}  // namespace kerncap::interpose
