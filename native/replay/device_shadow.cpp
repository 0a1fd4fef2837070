#include "replay/device_shadow.h"

#include <algorithm>

namespace kerncap::replay {
namespace {

constexpr std::uint64_t kAlign = 256;  // of each range in the buffer: copies go in whole lines

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

DeviceShadow::~DeviceShadow() { release(); }

void DeviceShadow::release() {
  if (buffer_ != nullptr) runtime_.amd.hsa_amd_memory_pool_free_fn(buffer_);
  buffer_ = nullptr;
  ranges_.clear();
  kept_.clear();
}

void DeviceShadow::keep(const RangeSet& ranges) {
  if (agent_.coarse.handle == 0 || ranges.minus(ranges_).empty()) return;
  RangeSet all = ranges_;
  all.unite(ranges);
  release();
  std::uint64_t total = 0;
  std::vector<Kept> kept;
  for (const Range& range : all) {
    kept.push_back({range, total});
    total += aligned(range.bytes);
  }
  if (runtime_.amd.hsa_amd_memory_pool_allocate_fn(agent_.coarse, total, 0, &buffer_) !=
      abi::HSA_STATUS_SUCCESS) {
    buffer_ = nullptr;  // restored from the host then
    return;
  }
  for (const Kept& item : kept) {
    runtime_.check(
        runtime_.core.hsa_memory_copy_fn(static_cast<char*>(buffer_) + item.offset,
                                         reinterpret_cast<const void*>(item.range.base), item.range.bytes),
        "keeping a copy on the device");
  }
  ranges_ = std::move(all);
  kept_ = std::move(kept);
}

bool DeviceShadow::restore(std::uint64_t address, std::uint64_t bytes) {
  const auto found = std::upper_bound(kept_.begin(), kept_.end(), address,
                                      [](std::uint64_t at, const Kept& k) { return at < k.range.end(); });
  if (found == kept_.end() || found->range.base > address || address + bytes > found->range.end())
    return false;
  runtime_.check(
      runtime_.core.hsa_memory_copy_fn(
          reinterpret_cast<void*>(address),
          static_cast<const char*>(buffer_) + found->offset + (address - found->range.base), bytes),
      "restoring from the copy on the device");
  restored_bytes_ += bytes;
  return true;
}

}  // namespace kerncap::replay
