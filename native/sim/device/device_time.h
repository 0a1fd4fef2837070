// From the simulated time of waves to the time of the dispatch. Only sums and maxima of integers by compute
// unit, so the result does not depend on host threads or on their timing.
#pragma once

#include <vector>

#include "sim/device/workgroup.h"

namespace kerncap::sim {

class DeviceTime {
 public:
  // Of a dispatch of `workgroups`: compute units that get none of them cost nothing here.
  DeviceTime(const isa::CostTable& costs, unsigned compute_units, std::uint64_t workgroups);
  void add(const Workgroup& workgroup);
  void merge_from(const DeviceTime& other);
  // Elapsed cycles of the device.
  [[nodiscard]] std::uint64_t cycles(const DispatchInfo& dispatch) const;

 private:
  struct ComputeUnit {
    std::uint64_t simd[4][isa::kUnits] = {};  // busy cycles
    std::uint64_t lds = 0, lines = 0;
    std::uint64_t critical = 0, longest = 0;  // of its workgroups: the sum of their times, and the longest
    std::uint64_t workgroups = 0;
  };
  const isa::CostTable* costs_;
  std::uint64_t compute_units_;
  std::vector<ComputeUnit> units_;  // the first of them: as many as have workgroups
  std::uint64_t bytes_ = 0;
};

}  // namespace kerncap::sim
