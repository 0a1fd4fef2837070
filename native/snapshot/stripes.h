// How a memory file's bytes are dealt out to several files (FileHeader::pre_files): stripe after stripe, in
// turn. The first has the name itself, the others a number behind it: memory.pre, memory.pre.1, ...
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "snapshot/records.h"

namespace kerncap::snapshot {

struct Stripes {
  std::uint32_t files = 1;

  struct Place {
    std::uint32_t file;
    std::uint64_t offset;  // in it
    std::uint64_t left;    // bytes to the end of the stripe
  };
  [[nodiscard]] Place place(std::uint64_t offset) const {
    if (files == 1) return {0, offset, UINT64_MAX - offset};
    const std::uint64_t stripe = offset / kStripeBytes, within = offset % kStripeBytes;
    return {static_cast<std::uint32_t>(stripe % files), stripe / files * kStripeBytes + within,
            kStripeBytes - within};
  }
  // The other way round, for an offset in file `file`.
  [[nodiscard]] std::uint64_t offset_of(std::uint32_t file, std::uint64_t offset) const {
    if (files == 1) return offset;
    return (offset / kStripeBytes * files + file) * kStripeBytes + offset % kStripeBytes;
  }
  // The length of one file of `bytes` in all.
  [[nodiscard]] std::uint64_t length(std::uint32_t file, std::uint64_t bytes) const {
    if (files == 1) return bytes;
    const std::uint64_t whole = bytes / kStripeBytes, rest = bytes % kStripeBytes;
    const std::uint64_t last = whole % files;
    return (whole / files + (file < last ? 1 : 0)) * kStripeBytes + (file == last ? rest : 0);
  }
  // Files that hold any of `bytes`; at least one.
  [[nodiscard]] std::uint32_t used(std::uint64_t bytes) const {
    const std::uint64_t stripes = (bytes + kStripeBytes - 1) / kStripeBytes;
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(stripes, 1, files));
  }
  [[nodiscard]] static std::string name(const std::string& first, std::uint32_t file) {
    return file == 0 ? first : first + "." + std::to_string(file);
  }
};

}  // namespace kerncap::snapshot
