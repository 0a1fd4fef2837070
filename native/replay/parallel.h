// Work over blocks of memory, on all cores.
#pragma once

#include <cstdint>
#include <functional>

namespace kerncap::replay {

// Runs `task(i)` for every i in [0, count), in any order, on as many threads as there are cores. The first
// exception stops the rest and is thrown again here.
void parallel_for(std::uint64_t count, const std::function<void(std::uint64_t)>& task);

}  // namespace kerncap::replay
