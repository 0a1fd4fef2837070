// The statistics file of one process: created, grown and filled. See layout.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "live/layout.h"

namespace kerncap::live {

struct NewRow {
  std::uint64_t id = 0;
  std::string_view name;  // mangled
  std::string_view demangled;
  KernelKind kind = KernelKind::unknown;
  std::uint32_t device = 0;
  std::uint64_t code_hash = 0;
  std::uint32_t vgprs = 0;
  std::uint32_t sgprs = 0;
  std::uint32_t lds_bytes = 0;
  std::uint32_t scratch_bytes = 0;
};

class LiveFile {
 public:
  // <session>/<pid>-<start>.live; after an exec the name is taken, then <pid>-<start>.2.live and so on.
  // Where the file cannot be made (a full disk), rows are kept in private memory, so that counting and
  // captures go on, and `warning` says why. Null where there is no memory for that either. Both are
  // counted in `control`, for the front end, which finds no file.
  static std::unique_ptr<LiveFile> create(const std::string& session, std::string* warning,
                                          Control* control = nullptr);
  ~LiveFile();
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

  LiveHeader& header() { return *header_; }
  // Rows lie kRowBytes apart, which leaves room for fields to come.
  Row& row(std::uint32_t index) {
    return *reinterpret_cast<Row*>(map_ + kRowsOffset + std::uint64_t{kRowBytes} * index);
  }

  // A row for a kernel seen for the first time; 0 when the file is full. Thread safe.
  std::uint32_t add_row(const NewRow& row);

  // Extends the file before it is needed, so that add_row need not. Called off the dispatch path.
  void reserve_ahead();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  LiveFile() = default;
  int map(std::string* warning);  // 0, or the error
  // Makes sure that bytes up to `end` of a part that starts at `start` are backed by the disk. 0, or the
  // error.
  int back(std::uint64_t start, std::uint64_t& backed, std::uint64_t end, std::uint64_t chunk,
           std::uint64_t limit);

  std::string path_;
  int fd_ = -1;
  char* map_ = nullptr;
  std::uint64_t map_bytes_ = 0;
  LiveHeader* header_ = nullptr;
  std::mutex mutex_;
  std::uint32_t row_count_ = 0;
  std::uint64_t name_bytes_ = 0;
  std::uint64_t rows_backed_ = 0;   // bytes from kRowsOffset
  std::uint64_t names_backed_ = 0;  // bytes from kNamesOffset
};

// One dispatch seen; `now` is CLOCK_MONOTONIC.
inline void count_dispatch(Row& row, const std::uint32_t (&grid)[3], const std::uint32_t (&block)[3],
                           std::uint32_t dynamic_lds, std::uint64_t now) {
  row.last_seen_ns.store(now, std::memory_order_relaxed);
  for (int i = 0; i < 3; ++i) {
    row.grid[i].store(grid[i], std::memory_order_relaxed);
    row.block[i].store(block[i], std::memory_order_relaxed);
  }
  row.last_dynamic_lds.store(dynamic_lds, std::memory_order_relaxed);
}

// One duration, > 0, of the nth dispatch of its kernel (0: not known).
void count_time(Row& row, std::uint64_t ns, std::uint64_t nth = 0);

std::uint64_t monotonic_ns();
std::uint64_t coarse_monotonic_ns();  // some milliseconds behind, an order cheaper

}  // namespace kerncap::live
