// Where memory differs before and after, and its way into the capture.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "snapshot/capture_writer.h"

namespace kerncap::interpose {

struct ChangedRun {
  std::uint32_t region = 0;  // index
  std::uint32_t region_id = 0;
  std::uint64_t address = 0;
  const unsigned char* data = nullptr;  // after
  std::uint64_t bytes = 0;
};

inline constexpr std::uint64_t kChangeGranule = 64;
// A kernel that writes a word here and there must not cost a record for each: past so many runs in one piece,
// runs with less than this between them become one.
inline constexpr std::uint64_t kManyRuns = 256;
inline constexpr std::uint64_t kCoarseGap = 4096;

// Calls run(offset, bytes) for each run of granules that differ, in order.
template <typename Run>
void find_changes(const unsigned char* before, const unsigned char* after, std::uint64_t bytes, Run run) {
  if (std::memcmp(before, after, bytes) == 0) return;
  std::uint64_t begin = 0, end = 0, runs = 0;  // the run that is open: [begin, end)
  for (std::uint64_t at = 0; at < bytes; at += kChangeGranule) {
    const std::uint64_t n = bytes - at < kChangeGranule ? bytes - at : kChangeGranule;
    if (std::memcmp(before + at, after + at, n) == 0) continue;
    const bool near = end != 0 && (at == end || (runs > kManyRuns && at - end < kCoarseGap));
    if (!near) {
      if (end != 0) run(begin, end - begin);
      ++runs;
      begin = at;
    }
    end = at + n;
  }
  if (end != 0) run(begin, end - begin);
}

// Appends runs in order of their place in memory.pre; runs that meet become one record.
class ChangeWriter {
 public:
  explicit ChangeWriter(snapshot::CaptureWriter& writer) : writer_(writer) {}

  void append(const ChangedRun& run) {
    const std::uint64_t offset = writer_.post().size();
    writer_.post().append(run.data, run.bytes);
    if (open_ && open_->region == run.region_id && open_->address + open_->bytes == run.address) {
      open_->bytes += run.bytes;
      return;
    }
    finish();
    open_.emplace();
    open_->region = run.region_id;
    open_->address = run.address;
    open_->bytes = run.bytes;
    open_->post_offset = offset;
  }

  void finish() {
    if (open_) writer_.add(*open_, snapshot::RecordType::change);
    open_.reset();
  }

 private:
  snapshot::CaptureWriter& writer_;
  std::optional<snapshot::ChangeRecord> open_;
};

}  // namespace kerncap::interpose
