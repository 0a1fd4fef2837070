// Where the bytes of a memory file lie: in which of its files (stripes.h), and, of a block whose bytes
// another block has too, at that other block's place (RepeatsRecord).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "snapshot/records.h"
#include "snapshot/stripes.h"

namespace kerncap::snapshot {

using Repeats = std::map<std::uint64_t, std::uint64_t>;  // block -> the block that has its bytes

struct Layout {
  Stripes stripes;
  Repeats repeats;

  // The block where the bytes of `block` are: most often itself.
  [[nodiscard]] std::uint64_t source_of(std::uint64_t block) const {
    const auto repeat = repeats.find(block);
    return repeat == repeats.end() ? block : repeat->second;
  }
  [[nodiscard]] Stripes::Place place(std::uint64_t offset) const {
    if (repeats.empty()) return stripes.place(offset);
    const std::uint64_t within = offset % kChecksumBlock;
    Stripes::Place place = stripes.place(source_of(offset / kChecksumBlock) * kChecksumBlock + within);
    place.left = std::min(place.left, kChecksumBlock - within);
    return place;
  }
};

}  // namespace kerncap::snapshot
