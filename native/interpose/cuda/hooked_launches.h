// The driver's launch functions, with kerncap in them: each launch is counted by the thread that makes it,
// without CUPTI. Where the functions cannot be hooked, launches are counted from CUPTI's records.
#pragma once

#include <cstdint>

namespace kerncap::interpose::cuda {

struct Kernel;

// Called once, before the program can launch. False where it is not possible; then nothing has changed.
bool hook_launches();
[[nodiscard]] bool launches_are_hooked();

// The launch that this thread is in, for the callbacks that CUPTI makes inside of it.
struct HookedLaunch {
  bool inside = false;
  Kernel* kernel = nullptr;  // null: not counted, because it runs nothing now or cannot be told
  std::uint64_t nth = 0;     // of its kernel, from 1
};
const HookedLaunch& hooked_launch();

}  // namespace kerncap::interpose::cuda
