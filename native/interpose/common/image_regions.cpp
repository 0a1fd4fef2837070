#include "interpose/common/image_regions.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace kerncap::interpose {

namespace {

auto first_from(const std::vector<ImageRegion>& sorted, std::uint64_t address) {
  return std::lower_bound(
      sorted.begin(), sorted.end(), address,
      [](const ImageRegion& region, std::uint64_t value) { return region.source.address < value; });
}

}  // namespace

bool overlaps_any(const std::vector<ImageRegion>& sorted, std::uint64_t begin, std::uint64_t end) {
  const auto next = first_from(sorted, end);
  return next != sorted.begin() && std::prev(next)->source.end() > begin;
}

void insert_sorted(std::vector<ImageRegion>& sorted, ImageRegion region) {
  const auto at = first_from(sorted, region.source.address);
  sorted.insert(at, std::move(region));
}

std::uint64_t word_at(const std::vector<unsigned char>& bytes, std::size_t offset) {
  std::uint64_t word = 0;
  if (offset + sizeof word <= bytes.size()) std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

}  // namespace kerncap::interpose
