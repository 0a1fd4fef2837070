// A copy on the device of the bytes that a kernel changes: from there they are put back between samples,
// faster than from the host, and without going through its caches.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/backend.h"
#include "replay/range_set.h"

namespace kerncap::replay {

class DeviceShadow {
 public:
  DeviceShadow(const Runtime& runtime, const Agent& agent) : runtime_(runtime), agent_(agent) {}
  ~DeviceShadow();
  DeviceShadow(const DeviceShadow&) = delete;
  DeviceShadow& operator=(const DeviceShadow&) = delete;

  // Copies `ranges` as the device has them now. Where there is no room for them, nothing is kept.
  void keep(const RangeSet& ranges);
  // Copies back; false if these bytes are not all in one range that is kept.
  bool restore(std::uint64_t address, std::uint64_t bytes);

  // How many bytes were put back from here so far.
  [[nodiscard]] std::uint64_t restored_bytes() const { return restored_bytes_; }

 private:
  struct Kept {
    Range range;
    std::uint64_t offset = 0;  // in the buffer
  };
  void release();

  const Runtime& runtime_;
  Agent agent_;
  std::uint64_t buffer_ = 0;
  RangeSet ranges_;
  std::vector<Kept> kept_;  // by address
  std::uint64_t restored_bytes_ = 0;
};

}  // namespace kerncap::replay
