// When kernels ran, by CUPTI's records.
#pragma once

#include <cstdint>

namespace kerncap::replay {

// Starts the records, once; false where libcupti cannot be had, or serves a profiler already.
bool start_kernel_records();
// The times of the last kernel that has completed, in ns of CUPTI's clock; false where no record has come.
bool take_kernel_record(std::uint64_t* start, std::uint64_t* end);

}  // namespace kerncap::replay
