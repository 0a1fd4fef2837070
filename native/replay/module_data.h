// The variables of a loaded module: what the capture has of them, paired with where they are now.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replay/replay_memory.h"
#include "snapshot/capture_reader.h"

namespace kerncap::replay {

class ModuleData {
 public:
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  // Expected bytes after the application's run, for pieces()[i].
  [[nodiscard]] const unsigned char* after(std::size_t piece) const { return after_[piece].data(); }
  // Names of captured variables that have no counterpart here, or one of another size.
  [[nodiscard]] const std::vector<std::string>& unmatched() const { return unmatched_; }
  // Bytes that the application's run changed and this module has no place for.
  [[nodiscard]] std::uint64_t unmatched_bytes() const { return unmatched_bytes_; }
  // Words of the data before the run whose place in this module is a guess: addresses of functions, of
  // variables without a name.
  [[nodiscard]] const std::vector<CodePointer>& guessed() const { return guessed_; }

 protected:
  // What a word of the captured data is here: words that pointed into the captured code object point into
  // this one. `*guessed`: nothing says what was at that place.
  using Moved = std::function<std::uint64_t(std::uint64_t word, bool* guessed)>;

  // Finds where each captured variable of the dispatched code object is here; `find` gives address and size
  // of one in this module, size 0: it has none.
  using Find = std::function<Range(const std::string&)>;
  void find_variables(const snapshot::CaptureReader& capture, const Find& find);
  // Where what lay in a captured variable is here; null: nothing says so.
  [[nodiscard]] std::optional<std::uint64_t> of_variable(std::uint64_t captured) const;

  // Saved regions that hold data of the dispatched kernel's code object.
  static std::vector<const snapshot::RegionRecord*> segments(const snapshot::CaptureReader& capture);
  void add_piece(const snapshot::CaptureReader& capture, const ReplayMemory& memory,
                 const snapshot::RegionRecord& region, std::uint64_t captured, std::uint64_t live,
                 std::uint64_t bytes, const Moved& moved);
  // Variable by variable.
  void bind_variables(const snapshot::CaptureReader& capture, const ReplayMemory& memory, const Find& find,
                      const Moved& moved);

 private:
  std::vector<Piece> pieces_;
  std::deque<std::vector<unsigned char>> before_, after_;
  struct Displaced {
    Range captured;
    std::uint64_t live = 0;
  };
  std::vector<Displaced> displaced_;
  std::vector<CodePointer> guessed_;
  std::vector<std::string> unmatched_;
  std::uint64_t unmatched_bytes_ = 0;
};

}  // namespace kerncap::replay
