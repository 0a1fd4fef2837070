#include "replay/replay_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_map>

#include "replay/compare.h"
#include "replay/error.h"
#include "replay/parallel.h"
#include "replay/upload.h"
#include "snapshot/xxh64.h"

namespace kerncap::replay {
namespace {

using snapshot::RegionKind;
using snapshot::RegionRecord;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kChunk = 32768;          // hashed, scanned and copied at once
constexpr std::uint64_t kReadAhead = 16u << 20;  // of the disk, beyond the block that is hashed
constexpr std::size_t kMostPointers = 65536;     // that are remembered
constexpr std::uint64_t kWordStep = 4;           // pointers are aligned so, in packed structures too

std::uint64_t blocks_of(std::uint64_t bytes) {
  return (bytes + snapshot::kChecksumBlock - 1) / snapshot::kChecksumBlock;
}

bool saved(const RegionRecord& region) { return (region.flags & snapshot::kSaved) != 0 && region.bytes > 0; }

}  // namespace

const char* kind_name(RegionKind kind) {
  switch (kind) {
    case RegionKind::device:
      return "device";
    case RegionKind::device_fine:
      return "device, fine-grained";
    case RegionKind::host:
      return "host";
    case RegionKind::kernarg:
      return "kernarg";
    case RegionKind::registered:
      return "registered host";
    case RegionKind::managed:
      return "managed";
    case RegionKind::vmem:
      return "virtual";
    case RegionKind::code_segment:
      return "module data";
  }
  return "unknown";
}

ReplayMemory::ReplayMemory(const std::string& directory, const snapshot::CaptureReader& capture)
    : capture_(capture) {
  const snapshot::CodeObjectRecord& code = capture.code_object(capture.dispatch.code_object).record;
  code_ = {code.load_base, code.load_bytes};
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < capture.regions.size(); ++i) {
    const RegionRecord& region = capture.regions[i].record;
    const bool of_the_kernel =
        region.kind == RegionKind::code_segment && region.code_object == capture.dispatch.code_object;
    if (saved(region) && !of_the_kernel) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return capture.regions[a].record.address < capture.regions[b].record.address;
  });
  arrange(order);
  // The files are mapped only after the captured ranges are held: see place().
  files_ = {directory + "/memory.pre", directory + "/memory.post"};
}

ReplayMemory::~ReplayMemory() = default;  // the process ends; the runtime's own shutdown unmaps

bool ReplayMemory::rewritten(const Span& span) const {
  const RegionRecord& region = capture_.regions[span.regions.front()].record;
  std::uint64_t changed = 0;
  for (const snapshot::ChangeRecord& change : capture_.changes) {
    if (change.region == region.id) changed += change.bytes;
  }
  return changed >= region.bytes / 4;
}

void ReplayMemory::fill() {
  for (const Span& span : spans_) {
    std::uint64_t at = span.range.base;
    for (const std::size_t i : span.regions) {
      const RegionRecord& region = capture_.regions[i].record;
      pieces_.push_back({region.address, region.address, region.bytes, before(region), region.id, 0});
      parts_.push_back({region.pre_offset, pieces_.size() - 1, span.from_file});
      if (region.address > at) slack_.push_back({at, region.address - at});
      at = std::max(at, region.address + region.bytes);
    }
    if (at < span.range.end()) slack_.push_back({at, span.range.end() - at});
    if (span.is_vmem) clear(span);  // what is mapped fresh may hold old bytes
  }
  std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.offset < b.offset; });
  parallel_for(blocks_of(capture_.pre_bytes), [this](std::uint64_t block) { fill_block(block); });
  check_post();
  for (const Range& range : slack_) fill_with(range.base, kCanary, range.bytes);
  // CUDA's parameters are adapted to where the variables are.
  if (!capture_.cuda_launch) {
    const std::uint64_t bytes = capture_.kernarg_bytes.size();
    scan(capture_.kernarg_bytes.data(), capture_.kernarg.address, 0, bytes, bytes);
  }
  // Kernel arguments that lie in a region have been seen twice; the region's word is the one they are read
  // from.
  std::sort(code_pointers_.begin(), code_pointers_.end(), [](const CodePointer& a, const CodePointer& b) {
    return a.at != b.at ? a.at < b.at : a.live > b.live;
  });
  const auto twice = std::unique(code_pointers_.begin(), code_pointers_.end(),
                                 [](const CodePointer& a, const CodePointer& b) { return a.at == b.at; });
  code_pointer_count_ -= static_cast<std::uint64_t>(code_pointers_.end() - twice);
  code_pointers_.erase(twice, code_pointers_.end());
}

template <typename Use>
void ReplayMemory::check_block(snapshot::MemoryFile which, const MappedFile& file, std::uint64_t block,
                               const Use& use) const {
  const std::uint64_t begin = block * snapshot::kChecksumBlock;
  const std::uint64_t end = std::min(begin + snapshot::kChecksumBlock, file.bytes());
  if (file.is_hole(begin, end - begin)) {
    capture_.check_zero_block(which, block);
    return;
  }
  file.read_ahead(begin + kReadAhead, snapshot::kChecksumBlock);
  snapshot::Xxh64 hash;
  for (std::uint64_t at = begin; at < end; at += kChunk) {
    const std::uint64_t bytes = std::min(kChunk, end - at);
    hash.update(file.data() + at, bytes);
    use(at, bytes);  // while it is in the cache
  }
  capture_.check_block(which, block, hash.digest());
}

void ReplayMemory::check_post() {
  struct After {  // of memory.post
    std::uint64_t offset, bytes;
    const unsigned char* before;
  };
  std::unordered_map<std::uint32_t, const RegionRecord*> regions;
  for (const snapshot::Region& region : capture_.regions) regions[region.record.id] = &region.record;
  std::vector<After> changes;
  for (const snapshot::ChangeRecord& change : capture_.changes) {
    const RegionRecord& region = *regions.at(change.region);
    changes.push_back({change.post_offset, change.bytes, before(region) + (change.address - region.address)});
  }
  std::sort(changes.begin(), changes.end(),
            [](const After& a, const After& b) { return a.offset < b.offset; });
  parallel_for(blocks_of(capture_.post_bytes), [&](std::uint64_t block) {
    check_block(snapshot::MemoryFile::post, post_, block, [](std::uint64_t, std::uint64_t) {});
    const std::uint64_t begin = block * snapshot::kChecksumBlock, end = begin + snapshot::kChecksumBlock;
    auto change = std::upper_bound(changes.begin(), changes.end(), begin,
                                   [](std::uint64_t at, const After& c) { return at < c.offset + c.bytes; });
    std::uint64_t changed = 0;
    for (; change != changes.end() && change->offset < end; ++change) {
      const std::uint64_t lo = std::max(change->offset, begin);
      const std::uint64_t bytes = std::min(change->offset + change->bytes, end) - lo;
      changed += bytes - equal_bytes(change->before + (lo - change->offset), post_.data() + lo, bytes);
    }
    changed_bytes_ += changed;
  });
}

void ReplayMemory::fill_block(std::uint64_t block) {
  Upload upload(*this);
  check_block(snapshot::MemoryFile::pre, pre_, block, [&](std::uint64_t begin, std::uint64_t bytes) {
    auto part = std::upper_bound(parts_.begin(), parts_.end(), begin, [&](std::uint64_t at, const Part& p) {
      return at < p.offset + pieces_[p.piece].bytes;
    });
    for (; part != parts_.end() && part->offset < begin + bytes; ++part) {
      const Piece& piece = pieces_[part->piece];
      const std::uint64_t lo = std::max(part->offset, begin);
      const std::uint64_t hi = std::min(part->offset + piece.bytes, begin + bytes);
      const std::uint64_t within = lo - part->offset;
      if (!part->in_place) upload.put(piece.live + within, piece.before + within, hi - lo);
      scan(piece.before + within, piece.captured + within, piece.live + within, hi - lo,
           piece.bytes - within);
    }
  });
  upload.send();
}

bool ReplayMemory::may_point_at_code(const unsigned char* words, std::uint64_t count) const {
  // Looks at upper halves alone, which compilers do many at a time.
  const auto low = static_cast<std::uint32_t>(code_.base >> 32);
  const auto width = static_cast<std::uint32_t>(code_.end() >> 32) - low;
  std::uint32_t any = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint32_t upper = 0;
    std::memcpy(&upper, words + i * kWordStep + 4, sizeof(upper));
    any |= static_cast<std::uint32_t>(upper - low <= width);
  }
  return any != 0;
}

void ReplayMemory::scan(const unsigned char* data, std::uint64_t address, std::uint64_t live,
                        std::uint64_t bytes, std::uint64_t there) {
  const std::uint64_t skip = (kWordStep - address % kWordStep) % kWordStep;
  if (there < skip + 8 || bytes <= skip || code_.bytes == 0) return;
  const std::uint64_t last = std::min(bytes - 1, there - 8);  // where a word may begin
  if (last < skip) return;
  const std::uint64_t words = (last - skip) / kWordStep + 1;
  if (!may_point_at_code(data + skip, words)) return;
  std::vector<CodePointer> found;
  for (std::uint64_t i = 0; i < words; ++i) {
    const std::uint64_t offset = skip + i * kWordStep;
    std::uint64_t word = 0;
    std::memcpy(&word, data + offset, 8);
    // One behind the end too: that is where the end of the last variable is.
    if (word - code_.base > code_.bytes) continue;
    found.push_back({address + offset, live == 0 ? 0 : live + offset, word});
  }
  const std::lock_guard lock(scan_mutex_);
  code_pointer_count_ += found.size();
  for (const CodePointer& pointer : found) {
    if (code_pointers_.size() < kMostPointers) code_pointers_.push_back(pointer);
  }
}

const RegionRecord* ReplayMemory::region_at(std::uint64_t address) const {
  for (const snapshot::Region& region : capture_.regions) {
    if (address - region.record.address < region.record.bytes) return &region.record;
  }
  return nullptr;
}

std::string ReplayMemory::describe(std::uint64_t address) const {
  const RegionRecord* best = nullptr;
  std::uint64_t best_distance = ~0ULL;
  for (const snapshot::Region& item : capture_.regions) {
    const RegionRecord& region = item.record;
    std::uint64_t distance = 0;
    if (address < region.address) {
      distance = region.address - address;
    } else if (address >= region.address + region.bytes) {
      distance = address - (region.address + region.bytes) + 1;
    }
    if (distance < best_distance) best = &region, best_distance = distance;
  }
  if (best == nullptr) return hex(address) + ", with no captured region near it";
  const std::string name = "region " + std::to_string(best->id) + " (" + kind_name(best->kind) + ", " +
                           std::to_string(best->bytes) + " bytes at " + hex(best->address) + ")";
  if (address < best->address)
    return hex(address) + ", " + std::to_string(best_distance) + " bytes before " + name;
  if (best_distance > 0) {
    return hex(address) + ", " + std::to_string(best_distance - 1) + " bytes past the end of " + name;
  }
  return hex(address) + ", at byte " + std::to_string(address - best->address) + " of " + name;
}

}  // namespace kerncap::replay
