// When kernels ran, by CUPTI's records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kerncap::replay {

// Starts the records, once; false where libcupti cannot be had, or serves a profiler already.
bool start_kernel_records();
// In ns of CUPTI's clock.
struct KernelTime {
  std::uint64_t start = 0, end = 0;
};
// The last `count` kernels, in the order in which they ran; false, and nothing taken, until as many records
// have come. Kernels of the replayer's own do not count.
bool take_kernel_records(std::size_t count, std::vector<KernelTime>* times);
// Forgets what has come so far.
void drop_kernel_records();

}  // namespace kerncap::replay
