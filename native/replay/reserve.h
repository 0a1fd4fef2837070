// Holding the captured address ranges from the first moment of the process, so that neither the runtime nor
// the allocator takes them. A range that is already taken (libc, the stack, the vdso lie where the kernel's
// address randomisation put them) is answered by starting the program again, with another layout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/range_set.h"

namespace kerncap::replay {

struct Placeholder {
  Range range;           // whole pages
  bool required = true;  // code objects are wanted at their captured addresses, but can do without
  std::string what;      // "region 3 (device, 4096 bytes)": for messages
  bool held = false;
  bool keep = true;  // false: it only has to be free at the start
};

class Reservation {
 public:
  // Maps every placeholder without access. A required one that is taken is reported by collision().
  explicit Reservation(std::vector<Placeholder> wanted);
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // The first required placeholder that could not be held, with what lies there; empty: all are held.
  [[nodiscard]] const std::string& collision() const { return collision_; }
  // Whether that was for want of memory: another layout would not help.
  [[nodiscard]] bool short_of_memory() const { return short_of_memory_; }

  // Gives up a held range (whole pages), right before it is mapped for good. False if it is not held.
  bool release(const Range& range);
  [[nodiscard]] bool holds(const Range& range) const;

 private:
  std::vector<Placeholder> wanted_;
  std::string collision_;
  bool short_of_memory_ = false;
};

Range whole_pages(const Range& range);

// Maps memory of this process at exactly that range of whole pages. Throws ReplayError (collision, device).
void map_own(const Range& range);

// What /proc/self/maps has in `range`: "/usr/lib/libc.so.6 at 0x7f...-0x7f...", or kNothingThere.
inline constexpr const char* kNothingThere = "nothing";
std::string mapped_there(const Range& range);

// How often this program has started itself again; 0 at first.
unsigned layout_attempt();

// Starts this program again with address randomisation on. Returns only if that fails.
void start_again(char** argv);

}  // namespace kerncap::replay
