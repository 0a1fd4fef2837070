// Memory after a run against what it should be, block by block: about the time of one memcmp over it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "replay/range_set.h"
#include "replay/replay_memory.h"

namespace kerncap::replay {

// Bytes that take the place of the captured ones: what the application's run left, or the captured kernel's
// own.
struct Overlay {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  const unsigned char* data = nullptr;
};

// A piece with the bytes it should hold: `base`, under `overlays` where those reach.
struct Expectation {
  Piece piece;
  const unsigned char* base = nullptr;
  const std::vector<Overlay>* overlays = nullptr;  // sorted by address, disjoint; null: none

  // The expected bytes [begin, begin + bytes) of the captured address space, copied.
  void materialise(std::uint64_t begin, std::uint64_t bytes, unsigned char* out) const;
};

// Neighbouring bytes that differ, as the client reads them (little-endian, 40 bytes).
struct DiffRun {
  std::uint64_t address = 0;  // captured; whole 16-byte blocks, as far as the piece goes
  std::uint64_t bytes = 0;
  std::uint64_t different = 0;          // of them
  std::uint64_t data_offset = kNoData;  // in the data file: `bytes` expected, then `bytes` found
  std::uint32_t region = 0;             // 0: in mapped memory that belongs to no region
  std::uint32_t flags = 0;

  static constexpr std::uint64_t kNoData = ~0ULL;  // the data file is full
};
static_assert(sizeof(DiffRun) == 40);

// How many of the bytes are the same in both.
std::uint64_t equal_bytes(const unsigned char* a, const unsigned char* b, std::uint64_t bytes);

struct CompareResult {
  std::vector<DiffRun> runs;  // by address
  std::uint64_t compared = 0;
  std::uint64_t different = 0;
  std::map<std::uint64_t, std::uint64_t> compared_in;  // bytes compared, by region
};

class Comparer {
 public:
  // Bytes of runs go to `data_path` (created; empty: nowhere), at most `data_limit` of them.
  Comparer(const ReplayMemory& memory, const std::string& data_path, std::uint64_t data_limit);
  ~Comparer();
  Comparer(const Comparer&) = delete;
  Comparer& operator=(const Comparer&) = delete;

  // Compares the bytes in `scope` (null: all) of every expectation; slack only without a scope.
  CompareResult compare(const std::vector<Expectation>& expected, const RangeSet* scope);

 private:
  struct Window {
    const Expectation* item;
    std::uint64_t begin, bytes;
    bool same = false;  // the device says so
  };
  std::vector<Window> windows_of(const std::vector<Expectation>& expected, const RangeSet* scope) const;
  void compare_window(const Window& window, const RangeSet* scope);
  // Memory as it is, from `begin` on, and the runs in it; `data_offset` is in `data` until they are kept.
  struct Batch {
    std::uint64_t begin = 0, bytes = 0;
    const unsigned char* found = nullptr;
    std::vector<DiffRun> runs;
    std::vector<unsigned char> data;
  };
  void compare_span(const Expectation& item, std::uint64_t address, const unsigned char* wanted,
                    std::uint64_t bytes, Batch& batch) const;
  void compare_slack(const Range& range);
  void add_run(const Expectation& item, std::uint64_t first, std::uint64_t end, std::uint64_t different,
               Batch& batch) const;
  void keep(Batch& batch);
  void write_data(const unsigned char* data, std::uint64_t bytes, std::uint64_t offset) const;

  const ReplayMemory& memory_;
  int data_fd_ = -1;
  std::string data_path_;
  std::uint64_t data_limit_ = 0;
  std::mutex mutex_;  // guards what follows
  std::uint64_t data_bytes_ = 0;
  CompareResult result_;
};

}  // namespace kerncap::replay
