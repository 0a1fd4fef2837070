// ReplayMemory on HSA: the simulator, whose memory the host touches, and hardware.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "replay/error.h"
#include "replay/replay_memory.h"
#include "replay/reserve.h"
#include "replay/upload.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace kerncap::replay {
namespace {

using snapshot::RegionKind;
using snapshot::RegionRecord;

constexpr std::uint64_t kPage = 4096;

bool in_device_memory(RegionKind kind) {
  return kind == RegionKind::device || kind == RegionKind::device_fine || kind == RegionKind::vmem ||
         kind == RegionKind::code_segment;
}

}  // namespace

void ReplayMemory::arrange(const std::vector<std::size_t>& order) {
  for (const std::size_t i : order) {
    const RegionRecord& region = capture_.regions[i].record;
    const Range pages = whole_pages({region.address, region.bytes});
    if (!spans_.empty() && pages.base < spans_.back().range.end()) {  // they share a page
      Span& span = spans_.back();
      span.range.bytes = std::max(span.range.end(), pages.end()) - span.range.base;
      span.regions.push_back(i);
    } else {
      spans_.push_back({pages, region.kind, {i}, false, false});
    }
  }
}

std::vector<Placeholder> ReplayMemory::placeholders() const {
  std::vector<Placeholder> wanted;
  for (const Span& span : spans_) {
    const RegionRecord& first = capture_.regions[span.regions.front()].record;
    wanted.push_back({span.range, true,
                      "region " + std::to_string(first.id) + " (" + kind_name(first.kind) + ", " +
                          std::to_string(first.bytes) + " bytes)",
                      false, true});
  }
  const Range code = whole_pages(code_);
  if (code.bytes > 0) wanted.push_back({code, false, "the code object", false, true});
  return wanted;
}

void ReplayMemory::map_vmem(Span& span) {
  const bool fine = span.kind == RegionKind::device_fine && agent_.fine.handle != 0;
  const abi::hsa_amd_memory_pool_t pool = fine ? agent_.fine : agent_.coarse;
  abi::hsa_amd_vmem_alloc_handle_t handle{};
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
      amd.hsa_amd_vmem_handle_create_fn(pool, span.range.bytes, abi::MEMORY_TYPE_NONE, 0, &handle),
      "allocating " + std::to_string(span.range.bytes) + " bytes of device memory");
  runtime_->check(amd.hsa_amd_vmem_map_fn(va, span.range.bytes, 0, handle, 0), "mapping " + what);
  const abi::hsa_amd_memory_access_desc_t access{abi::HSA_ACCESS_PERMISSION_RW, agent_.handle};
  runtime_->check(amd.hsa_amd_vmem_set_access_fn(va, span.range.bytes, &access, 1),
                  "giving access to " + what);
  span.is_vmem = true;
}

void ReplayMemory::map_host(Span& span, bool from_file) {
  void* const at = reinterpret_cast<void*>(span.range.base);
  map_own(span.range);
  if (from_file) {
    const RegionRecord& region = capture_.regions[span.regions.front()].record;
    pre_.map_private(region.pre_offset, region.bytes, region.address);
    span.from_file = true;
  } else {
    ::madvise(at, span.range.bytes, MADV_HUGEPAGE);  // fewer page faults; no matter if it is refused
  }
  void* agent_pointer = nullptr;
  abi::hsa_agent_t agent = agent_.handle;
  runtime_->check(runtime_->amd.hsa_amd_memory_lock_fn(at, span.range.bytes, &agent, 1, &agent_pointer),
                  "locking host memory at " + hex(span.range.base));
  if (agent_pointer != at) {
    throw ReplayError(ErrorClass::device,
                      "host memory at " + hex(span.range.base) + " is at another address for the device");
  }
}

void ReplayMemory::place(Runtime& runtime, const Agent& agent, Reservation& reservation, bool direct) {
  runtime_ = &runtime;
  agent_ = agent;
  touchable_ = direct;
  const bool vmem = runtime.has_vmem();
  pre_.open(files_[0], capture_.pre_bytes, capture_.layout(snapshot::MemoryFile::pre));
  post_.open(files_[1], capture_.post_bytes, capture_.layout(snapshot::MemoryFile::post));
  for (Span& span : spans_) {
    reservation.release(span.range);
    if (touchable_) {
      // The simulated GPU reads memory as the host does: what the kernel does not write to need not be
      // copied.
      const bool whole_pages = capture_.regions[span.regions.front()].record.address % kPage == 0;
      map_host(span, span.regions.size() == 1 && whole_pages && !rewritten(span));
    } else if (in_device_memory(span.kind) && vmem) {
      map_vmem(span);
    } else {
      if (in_device_memory(span.kind)) displaced_bytes_ += span.range.bytes;
      map_host(span, false);
    }
  }
}

void ReplayMemory::clear(const Span& span) const {
  runtime_->check(runtime_->amd.hsa_amd_memory_fill_fn(reinterpret_cast<void*>(span.range.base), 0,
                                                       span.range.bytes / sizeof(std::uint32_t)),
                  "clearing device memory");
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

void ReplayMemory::fill_with(std::uint64_t live, unsigned char value, std::uint64_t bytes) const {
  const std::vector<unsigned char> page(kPage, value);
  for (std::uint64_t at = 0; at < bytes; at += kPage)
    write(live + at, page.data(), std::min(kPage, bytes - at));
}

// This device makes no hashes.
std::uint64_t ReplayMemory::to_block_end(const unsigned char*) const { return 0; }
std::vector<bool> ReplayMemory::as_captured(const std::vector<Block>& blocks) const {
  return std::vector<bool>(blocks.size(), false);
}

ReplayMemory::Upload::Upload(const ReplayMemory& memory) : memory_(memory) {}
ReplayMemory::Upload::~Upload() = default;
void ReplayMemory::Upload::put(std::uint64_t live, const unsigned char* data, std::uint64_t bytes) {
  memory_.write(live, data, bytes);
}
void ReplayMemory::Upload::send() {}

}  // namespace kerncap::replay
