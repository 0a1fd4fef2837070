// Whether a piece lies inside something, for offsets and sizes that come from a file or a program.
#pragma once

#include <cstdint>

namespace kerncap::sim {

// [offset, offset + size) within [0, limit), where the sum may not fit 64 bits.
constexpr bool within(std::uint64_t offset, std::uint64_t size, std::uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

}  // namespace kerncap::sim
