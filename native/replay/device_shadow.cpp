#include "replay/device_shadow.h"

#include <algorithm>

namespace kerncap::replay {
namespace {

constexpr std::uint64_t kAlign = 256;  // of each range in the buffer: copies go in whole lines

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

DeviceShadow::~DeviceShadow() { release(); }

void DeviceShadow::release() {
  if (buffer_ != 0) runtime_.free_on_device(buffer_);
  buffer_ = 0;
  ranges_.clear();
  kept_.clear();
}

void DeviceShadow::keep(const RangeSet& ranges) {
  if (ranges.minus(ranges_).empty()) return;
  RangeSet all = ranges_;
  all.unite(ranges);
  release();
  std::uint64_t total = 0;
  std::vector<Kept> kept;
  for (const Range& range : all) {
    kept.push_back({range, total});
    total += aligned(range.bytes);
  }
  buffer_ = runtime_.allocate_on_device(agent_, total);
  if (buffer_ == 0) return;  // restored from the host then
  for (const Kept& item : kept) {
    runtime_.copy_on_device(buffer_ + item.offset, item.range.base, item.range.bytes);
  }
  ranges_ = std::move(all);
  kept_ = std::move(kept);
}

bool DeviceShadow::restore(std::uint64_t address, std::uint64_t bytes) {
  const auto found = std::upper_bound(kept_.begin(), kept_.end(), address,
                                      [](std::uint64_t at, const Kept& k) { return at < k.range.end(); });
  if (found == kept_.end() || found->range.base > address || address + bytes > found->range.end())
    return false;
  runtime_.copy_on_device(address, buffer_ + found->offset + (address - found->range.base), bytes);
  restored_bytes_ += bytes;
  return true;
}

}  // namespace kerncap::replay
