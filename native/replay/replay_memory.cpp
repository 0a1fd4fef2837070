#include "replay/replay_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "replay/error.h"
#include "replay/parallel.h"
#include "snapshot/error.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace kerncap::replay {
namespace {

using snapshot::RegionKind;
using snapshot::RegionRecord;

constexpr std::uint64_t kPage = 4096;

bool saved(const RegionRecord& region) { return (region.flags & snapshot::kSaved) != 0 && region.bytes > 0; }

bool in_device_memory(RegionKind kind) {
  return kind == RegionKind::device || kind == RegionKind::device_fine || kind == RegionKind::vmem ||
         kind == RegionKind::code_segment;
}

}  // namespace

void MappedFile::open(const std::string& path, std::uint64_t bytes) {
  bytes_ = bytes;
  if (bytes == 0) return;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) snapshot::throw_io("cannot open", path, errno);
  void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  const int error = errno;
  ::close(fd);
  if (at == MAP_FAILED) snapshot::throw_io("cannot map", path, error);
  data_ = static_cast<const unsigned char*>(at);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<unsigned char*>(data_), bytes_);
}

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
  for (const std::size_t i : order) {
    const RegionRecord& region = capture.regions[i].record;
    const Range pages = whole_pages({region.address, region.bytes});
    if (!spans_.empty() && pages.base < spans_.back().range.end()) {  // they share a page
      Span& span = spans_.back();
      span.range.bytes = std::max(span.range.end(), pages.end()) - span.range.base;
      span.regions.push_back(i);
    } else {
      spans_.push_back({pages, region.kind, {i}, {}, Span::Held::none});
    }
  }
  // The files are mapped only after the captured ranges are held: see fill().
  files_ = {directory + "/memory.pre", directory + "/memory.post"};
}

ReplayMemory::~ReplayMemory() = default;  // the process ends; the runtime's own shutdown unmaps

std::vector<Placeholder> ReplayMemory::placeholders() const {
  std::vector<Placeholder> wanted;
  for (const Span& span : spans_) {
    const RegionRecord& first = capture_.regions[span.regions.front()].record;
    wanted.push_back({span.range, true,
                      "region " + std::to_string(first.id) + " (" + kind_name(first.kind) + ", " +
                          std::to_string(first.bytes) + " bytes)",
                      false});
  }
  const Range code = whole_pages(code_);
  if (code.bytes > 0) wanted.push_back({code, false, "the code object", false});
  return wanted;
}

void ReplayMemory::map_vmem(Span& span, abi::hsa_amd_memory_pool_t pool) {
  const auto& amd = runtime_->amd;
  const std::string what = hex(span.range.base) + "-" + hex(span.range.end());
  void* va = nullptr;
  // The runtime answers a hint that it cannot follow with another address, not with an error.
  runtime_->check(amd.hsa_amd_vmem_address_reserve_fn(&va, span.range.bytes, span.range.base, 0),
                  "reserving " + what);
  if (reinterpret_cast<std::uint64_t>(va) != span.range.base) {
    amd.hsa_amd_vmem_address_free_fn(va, span.range.bytes);
    throw ReplayError(ErrorClass::collision, "the runtime could not reserve " + what + ": " +
                                                 mapped_there(span.range) + " is there");
  }
  runtime_->check(
      amd.hsa_amd_vmem_handle_create_fn(pool, span.range.bytes, abi::MEMORY_TYPE_NONE, 0, &span.handle),
      "allocating " + std::to_string(span.range.bytes) + " bytes of device memory");
  runtime_->check(amd.hsa_amd_vmem_map_fn(va, span.range.bytes, 0, span.handle, 0), "mapping " + what);
  const abi::hsa_amd_memory_access_desc_t access{abi::HSA_ACCESS_PERMISSION_RW, agent_.handle};
  runtime_->check(amd.hsa_amd_vmem_set_access_fn(va, span.range.bytes, &access, 1),
                  "giving access to " + what);
  span.held = Span::Held::vmem;
}

void ReplayMemory::map_host(Span& span) {
  void* const at = reinterpret_cast<void*>(span.range.base);
  void* const got = ::mmap(at, span.range.bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != at) {
    const int error = errno;
    if (got != MAP_FAILED) ::munmap(got, span.range.bytes);
    throw ReplayError(ErrorClass::collision, "cannot map " + hex(span.range.base) + "-" +
                                                 hex(span.range.end()) + ": " + std::strerror(error));
  }
  void* agent_pointer = nullptr;
  abi::hsa_agent_t agent = agent_.handle;
  runtime_->check(runtime_->amd.hsa_amd_memory_lock_fn(at, span.range.bytes, &agent, 1, &agent_pointer),
                  "locking host memory at " + hex(span.range.base));
  if (agent_pointer != at) {
    throw ReplayError(ErrorClass::device,
                      "host memory at " + hex(span.range.base) + " is at another address for the device");
  }
  span.held = Span::Held::host;
}

void ReplayMemory::place(Runtime& runtime, const Agent& agent, Reservation& reservation) {
  runtime_ = &runtime;
  agent_ = agent;
  touchable_ = runtime.host_can_touch_device();
  const bool vmem = runtime.has_vmem();
  for (Span& span : spans_) {
    reservation.release(span.range);
    const bool fine = span.kind == RegionKind::device_fine && agent.fine.handle != 0;
    if (in_device_memory(span.kind) && vmem) {
      map_vmem(span, fine ? agent.fine : agent.coarse);
    } else {
      if (in_device_memory(span.kind)) displaced_bytes_ += span.range.bytes;
      map_host(span);
    }
  }
}

void ReplayMemory::fill() {
  pre_.open(files_[0], capture_.pre_bytes);
  post_.open(files_[1], capture_.post_bytes);
  const std::uint64_t blocks = (capture_.pre_bytes + snapshot::kChecksumBlock - 1) / snapshot::kChecksumBlock;
  for (const Span& span : spans_) {
    std::uint64_t at = span.range.base;
    for (const std::size_t i : span.regions) {
      const RegionRecord& region = capture_.regions[i].record;
      pieces_.push_back({region.address, region.address, region.bytes, before(region), region.id, 0});
      if (region.address > at) slack_.push_back({at, region.address - at});
      at = std::max(at, region.address + region.bytes);
    }
    if (at < span.range.end()) slack_.push_back({at, span.range.end() - at});
    if (!touchable_ && span.held == Span::Held::vmem) {  // what is mapped fresh may hold old bytes
      runtime_->check(runtime_->amd.hsa_amd_memory_fill_fn(reinterpret_cast<void*>(span.range.base), 0,
                                                           span.range.bytes / sizeof(std::uint32_t)),
                      "clearing device memory");
    }
  }
  for (const Span& span : spans_) {  // fewer page faults; no matter if it is refused
    if (touchable_) ::madvise(reinterpret_cast<void*>(span.range.base), span.range.bytes, MADV_HUGEPAGE);
  }
  parallel_for(blocks, [this](std::uint64_t block) { fill_block(block); });
  const std::uint64_t post_blocks =
      (capture_.post_bytes + snapshot::kChecksumBlock - 1) / snapshot::kChecksumBlock;
  parallel_for(post_blocks, [this](std::uint64_t block) {
    std::vector<unsigned char> buffer(snapshot::kChecksumBlock);
    capture_.read_blocks(snapshot::MemoryFile::post, block, 1, buffer.data());
  });
  const std::vector<unsigned char> canary(kPage, kCanary);
  for (const Range& range : slack_) {
    for (std::uint64_t at = range.base; at < range.end(); at += kPage) {
      write(at, canary.data(), std::min(kPage, range.end() - at));
    }
  }
  scan(capture_.kernarg_bytes.data(), capture_.kernarg.address, capture_.kernarg_bytes.size());
}

void ReplayMemory::fill_block(std::uint64_t block) {
  thread_local std::vector<unsigned char> buffer(snapshot::kChecksumBlock);
  const std::uint64_t begin = block * snapshot::kChecksumBlock;
  const std::uint64_t end = std::min(begin + snapshot::kChecksumBlock, capture_.pre_bytes);
  const bool hole = capture_.is_hole(snapshot::MemoryFile::pre, begin, end - begin);
  // Read to where the bytes belong, if the block is of one region and the host may write there.
  const Piece* const whole = hole ? nullptr : piece_around(begin, end);
  unsigned char* const target =
      whole == nullptr ? nullptr : direct(whole->live + (begin - pre_offset(*whole)));
  unsigned char* const bytes = target == nullptr ? buffer.data() : target;
  capture_.read_blocks(snapshot::MemoryFile::pre, block, 1, bytes);
  if (hole) return;  // zeros, as fresh memory is
  for (const Piece& piece : pieces_) {
    const std::uint64_t offset = pre_offset(piece);
    const std::uint64_t lo = std::max(offset, begin), hi = std::min(offset + piece.bytes, end);
    if (lo >= hi) continue;
    const unsigned char* const data = bytes + (lo - begin);
    if (target == nullptr) write(piece.live + (lo - offset), data, hi - lo);
    scan(data, piece.captured + (lo - offset), hi - lo);
  }
}

const Piece* ReplayMemory::piece_around(std::uint64_t begin, std::uint64_t end) const {
  for (const Piece& piece : pieces_) {
    if (pre_offset(piece) <= begin && end <= pre_offset(piece) + piece.bytes) return &piece;
  }
  return nullptr;
}

void ReplayMemory::scan(const unsigned char* data, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t skip = (8 - address % 8) % 8;  // pointers are aligned
  if (bytes < skip + 8 || code_.bytes == 0) return;
  const std::uint64_t words = (bytes - skip) / 8;
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + skip + i * 8, 8);
    found += word - code_.base < code_.bytes;
  }
  if (found == 0) return;
  const std::lock_guard lock(scan_mutex_);
  code_pointer_count_ += found;
  for (std::uint64_t i = 0; i < words && code_pointers_.size() < 16; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + skip + i * 8, 8);
    if (word - code_.base < code_.bytes) code_pointers_.push_back({address + skip + i * 8, word});
  }
}

void ReplayMemory::read(std::uint64_t live, void* out, std::uint64_t bytes) const {
  if (touchable_) {
    std::memcpy(out, reinterpret_cast<const void*>(live), bytes);
    return;
  }
  runtime_->check(runtime_->core.hsa_memory_copy_fn(out, reinterpret_cast<const void*>(live), bytes),
                  "reading device memory at " + hex(live));
}

void ReplayMemory::write(std::uint64_t live, const void* data, std::uint64_t bytes) const {
  if (touchable_) {
    std::memcpy(reinterpret_cast<void*>(live), data, bytes);
    return;
  }
  runtime_->check(runtime_->core.hsa_memory_copy_fn(reinterpret_cast<void*>(live), data, bytes),
                  "writing device memory at " + hex(live));
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
