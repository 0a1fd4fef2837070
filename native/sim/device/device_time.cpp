#include "sim/device/device_time.h"

#include <algorithm>

namespace kerncap::sim {

DeviceTime::DeviceTime(const isa::CostTable& costs, unsigned compute_units, std::uint64_t workgroups)
    : costs_(&costs),
      compute_units_(std::max(compute_units, 1u)),
      units_(std::min<std::uint64_t>(compute_units_, workgroups)) {}

// Workgroups go round the compute units, their waves round the SIMDs.
void DeviceTime::add(const Workgroup& group) {
  ComputeUnit& unit = units_[group.index() % compute_units_];
  const std::uint64_t turn = group.index() / compute_units_;
  std::uint64_t end = 0;
  for (unsigned n = 0; n < group.wave_count(); ++n) {
    const isa::Timeline& time = group.wave(n).time;
    std::uint64_t* simd = unit.simd[(turn * group.wave_count() + n) % 4];
    for (unsigned u = 0; u < isa::kUnits; ++u) simd[u] += time.busy[u];
    unit.lds += time.bank_cycles;
    unit.lines += time.lines;
    bytes_ += time.bytes;
    end = std::max(end, time.now);
  }
  unit.critical += end;
  unit.longest = std::max(unit.longest, end);
  ++unit.workgroups;
}

void DeviceTime::merge_from(const DeviceTime& other) {
  for (std::size_t n = 0; n < units_.size(); ++n) {
    ComputeUnit& to = units_[n];
    const ComputeUnit& from = other.units_[n];
    for (unsigned s = 0; s < 4; ++s)
      for (unsigned u = 0; u < isa::kUnits; ++u) to.simd[s][u] += from.simd[s][u];
    to.lds += from.lds;
    to.lines += from.lines;
    to.critical += from.critical;
    to.longest = std::max(to.longest, from.longest);
    to.workgroups += from.workgroups;
  }
  bytes_ += other.bytes_;
}

// A compute unit needs as long as its busiest resource, or as its workgroups' own times laid into the number
// of places that occupancy leaves; the device as long as its slowest unit, or as its memory takes to move the
// bytes.
std::uint64_t DeviceTime::cycles(const DispatchInfo& dispatch) const {
  const isa::CostTable& t = *costs_;
  const unsigned waves = std::max(dispatch.full_waves(), 1u);
  const unsigned by_vgprs =
      std::max(1u, std::min(t.waves_per_simd, t.vgprs_per_simd_lane / dispatch.kernel.vgprs()));
  std::uint64_t places = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(t.simds) * by_vgprs / waves);
  if (dispatch.lds_bytes != 0)
    places = std::min<std::uint64_t>(places, std::max(1u, t.lds_bytes / dispatch.lds_bytes));
  std::uint64_t slowest = 0;
  for (const ComputeUnit& unit : units_) {
    if (unit.workgroups == 0) continue;
    std::uint64_t time = unit.longest;
    for (const auto& simd : unit.simd)
      for (const std::uint64_t busy : simd) time = std::max(time, busy);
    time = std::max(
        {time, unit.lds, unit.lines * t.cycles_per_line, unit.critical / std::min(places, unit.workgroups)});
    slowest = std::max(slowest, time + unit.workgroups * t.workgroup_launch);
  }
  return t.dispatch_overhead + std::max(slowest, bytes_ / t.device_bytes_per_cycle);
}

}  // namespace kerncap::sim
