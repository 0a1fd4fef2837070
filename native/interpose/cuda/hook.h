// Functions of another library, replaced in place: whoever calls one, by whatever pointer, calls ours.
#pragma once

#include <span>
#include <string>

namespace kerncap::interpose::cuda {

struct Hook {
  void* function;     // to be replaced
  void* replacement;  // of the same type
  void** original;    // gets what does what `function` did
};

// Replaces all of them, or, where one of them cannot be, changes nothing and says why. For good: no hook is
// taken away. No other thread may be at the beginning of one of the functions meanwhile.
bool install(std::span<const Hook> hooks, std::string* why);

}  // namespace kerncap::interpose::cuda
