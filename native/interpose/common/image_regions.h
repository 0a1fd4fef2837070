// Lists of regions by address, which do not overlap, and words that may point into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "interpose/common/memory_image.h"

namespace kerncap::interpose {

bool overlaps_any(const std::vector<ImageRegion>& sorted, std::uint64_t begin, std::uint64_t end);

// The caller has made sure that it overlaps none.
void insert_sorted(std::vector<ImageRegion>& sorted, ImageRegion region);

// 0 where the bytes end before it does.
std::uint64_t word_at(const std::vector<unsigned char>& bytes, std::size_t offset);

}  // namespace kerncap::interpose
