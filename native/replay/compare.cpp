#include "replay/compare.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "replay/parallel.h"
#include "snapshot/error.h"

namespace kerncap::replay {
namespace {

constexpr std::uint64_t kLargestElement = 8;  // bytes
constexpr std::uint64_t kWindow = 1u << 20;
constexpr std::uint64_t kChunk = 16384;  // compared at once; one that differs is looked through byte by byte
constexpr std::uint64_t kGap = 32;       // bytes alike that end a run
constexpr std::uint64_t kBlock = 16;     // runs are whole blocks, so that no element is cut

// The first overlay that ends after `address`.
std::size_t first_overlay(const std::vector<Overlay>& overlays, std::uint64_t address) {
  const auto found =
      std::upper_bound(overlays.begin(), overlays.end(), address,
                       [](std::uint64_t at, const Overlay& o) { return at < o.address + o.bytes; });
  return static_cast<std::size_t>(found - overlays.begin());
}

// Calls `use(address, bytes, data)` for the parts of [begin, end), in order.
template <typename Use>
void for_each_part(const Expectation& item, std::uint64_t begin, std::uint64_t end, const Use& use) {
  const auto base = [&](std::uint64_t address) { return item.base + (address - item.piece.captured); };
  std::uint64_t at = begin;
  if (item.overlays != nullptr) {
    for (std::size_t i = first_overlay(*item.overlays, begin); i < item.overlays->size(); ++i) {
      const Overlay& overlay = (*item.overlays)[i];
      if (overlay.address >= end) break;
      if (overlay.address > at) use(at, overlay.address - at, base(at));
      at = std::max(at, overlay.address);
      const std::uint64_t stop = std::min(end, overlay.address + overlay.bytes);
      if (stop > at) use(at, stop - at, overlay.data + (at - overlay.address));
      at = std::max(at, stop);
    }
  }
  if (at < end) use(at, end - at, base(at));
}

}  // namespace

std::uint64_t equal_bytes(const unsigned char* a, const unsigned char* b, std::uint64_t bytes) {
  std::uint64_t equal = 0;
  while (bytes != 0) {
    // Few enough that a byte holds each lane's count: that is what compilers turn into wide instructions.
    const std::uint64_t part = std::min<std::uint64_t>(bytes, 16 * 255);
    if (part % 16 == 0) {
      unsigned char counts[16] = {};
      for (std::uint64_t i = 0; i < part; i += 16) {
        for (unsigned lane = 0; lane < 16; ++lane) {
          counts[lane] = static_cast<unsigned char>(counts[lane] + (a[i + lane] == b[i + lane]));
        }
      }
      for (const unsigned char count : counts) equal += count;
    } else {
      for (std::uint64_t i = 0; i < part; ++i) equal += a[i] == b[i];
    }
    a += part, b += part, bytes -= part;
  }
  return equal;
}

void Expectation::materialise(std::uint64_t begin, std::uint64_t bytes, unsigned char* out) const {
  for_each_part(*this, begin, begin + bytes,
                [&](std::uint64_t at, std::uint64_t n, const unsigned char* data) {
                  std::memcpy(out + (at - begin), data, n);
                });
}

Comparer::Comparer(const ReplayMemory& memory, const std::string& data_path, std::uint64_t data_limit)
    : memory_(memory), data_path_(data_path), data_limit_(data_limit) {
  if (data_path.empty()) return;
  data_fd_ = ::open(data_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (data_fd_ < 0) snapshot::throw_io("cannot write", data_path, errno);
}

Comparer::~Comparer() {
  if (data_fd_ >= 0) ::close(data_fd_);
}

std::vector<Comparer::Window> Comparer::windows_of(const std::vector<Expectation>& expected,
                                                   const RangeSet* scope) const {
  std::vector<Window> windows;
  std::vector<std::size_t> whole;  // those that are one block of memory.pre, and should be as it was
  std::vector<ReplayMemory::Block> blocks;
  for (const Expectation& item : expected) {
    for (std::uint64_t at = item.piece.captured; at < item.piece.end();) {
      const unsigned char* const before = item.base + (at - item.piece.captured);
      const std::uint64_t to_end = memory_.to_block_end(before);
      const std::uint64_t bytes = std::min(to_end == 0 ? kWindow : to_end, item.piece.end() - at);
      windows.push_back({&item, at, bytes, false});
      at += bytes;
      if (to_end != kWindow || bytes != kWindow) continue;
      const Window& window = windows.back();
      if (scope != nullptr && scope->intersect(RangeSet({{window.begin, bytes}})).empty()) continue;
      if (item.overlays != nullptr) {
        const std::size_t i = first_overlay(*item.overlays, window.begin);
        if (i < item.overlays->size() && (*item.overlays)[i].address < at) continue;
      }
      whole.push_back(windows.size() - 1);
      blocks.push_back({item.piece.live + (window.begin - item.piece.captured), before});
    }
  }
  const std::vector<bool> same = memory_.as_captured(blocks);
  for (std::size_t i = 0; i < whole.size(); ++i) windows[whole[i]].same = same[i];
  return windows;
}

CompareResult Comparer::compare(const std::vector<Expectation>& expected, const RangeSet* scope) {
  const std::vector<Window> windows = windows_of(expected, scope);
  parallel_for(windows.size(), [&](std::uint64_t i) { compare_window(windows[i], scope); });
  if (scope == nullptr) {
    for (const Range& range : memory_.slack()) compare_slack(range);
  }
  std::sort(result_.runs.begin(), result_.runs.end(),
            [](const DiffRun& a, const DiffRun& b) { return a.address < b.address; });
  return std::move(result_);
}

void Comparer::compare_window(const Window& window, const RangeSet* scope) {
  const Expectation& item = *window.item;
  const std::uint64_t end = window.begin + window.bytes;
  const std::uint64_t live = item.piece.live + (window.begin - item.piece.captured);
  Batch batch;
  batch.begin = window.begin, batch.bytes = window.bytes;
  batch.found = memory_.direct(live);
  thread_local std::vector<unsigned char> buffer;
  auto fetch = [&] {
    if (batch.found != nullptr) return;
    buffer.resize(window.bytes);
    memory_.read(live, buffer.data(), window.bytes);
    batch.found = buffer.data();
  };
  std::uint64_t compared = 0;
  auto compare_part = [&](std::uint64_t begin, std::uint64_t stop) {
    if (window.same) {
      compared += stop - begin;
      return;
    }
    fetch();
    for_each_part(item, begin, stop, [&](std::uint64_t at, std::uint64_t n, const unsigned char* wanted) {
      compare_span(item, at, wanted, n, batch);
      compared += n;
    });
  };
  if (scope == nullptr) {
    compare_part(window.begin, end);
  } else {
    const auto& ranges = scope->ranges();
    auto range = std::upper_bound(ranges.begin(), ranges.end(), window.begin,
                                  [](std::uint64_t at, const Range& r) { return at < r.end(); });
    for (; range != ranges.end() && range->base < end; ++range) {
      compare_part(std::max(range->base, window.begin), std::min(range->end(), end));
    }
  }
  keep(batch);
  const std::lock_guard lock(mutex_);
  result_.compared += compared;
  if (compared != 0) result_.compared_in[item.piece.region] += compared;
}

void Comparer::compare_span(const Expectation& item, std::uint64_t address, const unsigned char* wanted,
                            std::uint64_t bytes, Batch& batch) const {
  const unsigned char* const found = batch.found + (address - batch.begin);
  for (std::uint64_t chunk = 0; chunk < bytes; chunk += kChunk) {
    const std::uint64_t stop = std::min(chunk + kChunk, bytes);
    if (std::memcmp(found + chunk, wanted + chunk, stop - chunk) == 0) continue;
    std::uint64_t i = chunk;
    while (i < stop) {
      if (found[i] == wanted[i]) {
        ++i;
        continue;
      }
      std::uint64_t last = i, different = 0;
      for (std::uint64_t j = i; j < stop && j <= last + kGap; ++j) {
        if (found[j] != wanted[j]) last = j, ++different;
      }
      add_run(item, address + i, address + last + 1, different, batch);
      i = last + 1;
    }
  }
}

void Comparer::compare_slack(const Range& range) {
  const std::vector<unsigned char> wanted(range.bytes, ReplayMemory::kCanary);
  std::vector<unsigned char> found(range.bytes);
  memory_.read(range.base, found.data(), range.bytes);
  Expectation outside;
  outside.piece.captured = outside.piece.live = range.base;
  outside.piece.bytes = range.bytes;
  outside.base = wanted.data();
  Batch batch;
  batch.begin = range.base, batch.bytes = range.bytes, batch.found = found.data();
  compare_span(outside, range.base, wanted.data(), range.bytes, batch);
  keep(batch);
}

void Comparer::add_run(const Expectation& item, std::uint64_t first, std::uint64_t end,
                       std::uint64_t different, Batch& batch) const {
  // Whole blocks and what may reach into them, as far as the piece goes, so that the client sees whole
  // elements, those of packed structures too.
  DiffRun run;
  const std::uint64_t begin = first / kBlock * kBlock;
  run.address = std::max(begin - std::min(begin, kLargestElement), item.piece.captured);
  run.bytes =
      std::min((end + kBlock - 1) / kBlock * kBlock + kLargestElement, item.piece.end()) - run.address;
  run.different = different;
  run.region = item.piece.region;
  if (data_fd_ >= 0) {
    run.data_offset = batch.data.size();
    batch.data.resize(batch.data.size() + 2 * run.bytes);
    unsigned char* const wanted = batch.data.data() + run.data_offset;
    unsigned char* const found = wanted + run.bytes;
    item.materialise(run.address, run.bytes, wanted);
    if (run.address >= batch.begin && run.address + run.bytes <= batch.begin + batch.bytes) {
      std::memcpy(found, batch.found + (run.address - batch.begin), run.bytes);
    } else {
      memory_.read(item.piece.live + (run.address - item.piece.captured), found, run.bytes);
    }
  }
  batch.runs.push_back(run);
}

// A window's runs and their data at once: a lock and a write for each run would take most of the time where
// there are many short ones.
void Comparer::keep(Batch& batch) {
  if (batch.runs.empty()) return;
  std::uint64_t offset = 0, kept = 0;
  {
    const std::lock_guard lock(mutex_);
    offset = data_bytes_;
    for (DiffRun& run : batch.runs) {
      result_.different += run.different;
      if (run.data_offset == DiffRun::kNoData) continue;
      const std::uint64_t bytes = 2 * run.bytes;
      if (offset + kept + bytes > data_limit_) {
        run.data_offset = DiffRun::kNoData;
        continue;
      }
      unsigned char* const data = batch.data.data();
      if (run.data_offset != kept) std::memmove(data + kept, data + run.data_offset, bytes);
      run.data_offset = offset + kept;
      kept += bytes;
    }
    data_bytes_ += kept;
    result_.runs.insert(result_.runs.end(), batch.runs.begin(), batch.runs.end());
  }
  write_data(batch.data.data(), kept, offset);
}

void Comparer::write_data(const unsigned char* data, std::uint64_t bytes, std::uint64_t offset) const {
  for (std::uint64_t done = 0; done < bytes;) {
    const ssize_t n = ::pwrite(data_fd_, data + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) snapshot::throw_io("cannot write", data_path_, errno);
    done += static_cast<std::uint64_t>(n);
  }
}

}  // namespace kerncap::replay
