// ReplayMemory on an NVIDIA GPU. The driver gives an address that is asked for only in units of 32 MiB:
// device memory is mapped into windows of that size, of which each whole 2 MiB that holds captured bytes is
// backed. Host memory goes where it was by mmap, and is registered; what of it lies in a window of device
// memory is mapped by the driver instead.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "replay/cuda/block_hash.h"
#include "replay/error.h"
#include "replay/replay_memory.h"
#include "replay/reserve.h"
#include "replay/upload.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace kerncap::replay {
namespace {

using namespace abi;  // NOLINT: the ABI's own names
using snapshot::RegionKind;
using snapshot::RegionRecord;

constexpr std::uint64_t kWindow = 32u << 20;
constexpr std::uint64_t kGranule = 2u << 20;  // of physical memory
constexpr std::uint64_t kPage = 4096;

bool in_host_memory(RegionKind kind) { return kind == RegionKind::host || kind == RegionKind::registered; }

Range rounded(const Range& range, std::uint64_t unit) {
  const std::uint64_t base = range.base / unit * unit;
  return {base, (range.end() + unit - 1) / unit * unit - base};
}

}  // namespace

void ReplayMemory::arrange(const std::vector<std::size_t>& order) {
  // Which 32-MiB windows the driver has to have; a host region that reaches into one is mapped by it as well.
  std::vector<bool> by_driver(order.size());
  RangeSet windows;
  for (bool more = true; more;) {
    more = false;
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (by_driver[k]) continue;
      const RegionRecord& region = capture_.regions[order[k]].record;
      const Range range{region.address, region.bytes};
      if (in_host_memory(region.kind) && windows.intersect(RangeSet({rounded(range, kPage)})).empty())
        continue;
      by_driver[k] = more = true;
      windows.unite(RangeSet({rounded(range, kWindow)}));
    }
  }
  for (std::size_t k = 0; k < order.size(); ++k) {
    const RegionRecord& region = capture_.regions[order[k]].record;
    const Range pages = rounded({region.address, region.bytes}, by_driver[k] ? kGranule : kPage);
    if (!spans_.empty() && spans_.back().is_vmem == by_driver[k] && pages.base < spans_.back().range.end()) {
      Span& span = spans_.back();
      span.range.bytes = std::max(span.range.end(), pages.end()) - span.range.base;
      span.regions.push_back(order[k]);
      if (!in_host_memory(region.kind)) span.kind = region.kind;
    } else {
      spans_.push_back({pages, region.kind, {order[k]}, by_driver[k], false});
    }
  }
}

std::vector<Placeholder> ReplayMemory::placeholders() const {
  std::vector<Placeholder> wanted;
  RangeSet windows;
  for (const Span& span : spans_) {
    if (span.is_vmem) {
      windows.unite(RangeSet({rounded(span.range, kWindow)}));
      continue;
    }
    const RegionRecord& first = capture_.regions[span.regions.front()].record;
    wanted.push_back({span.range, true,
                      "region " + std::to_string(first.id) + " (" + kind_name(first.kind) + ", " +
                          std::to_string(first.bytes) + " bytes)",
                      false, true});
  }
  // Not kept: what is mapped when the driver starts, it never gives out, though it be unmapped then.
  for (const Range& window : windows)
    wanted.push_back({window, true, "captured device memory", false, false});
  return wanted;
}

void ReplayMemory::map_vmem(Span& span) {
  const CudaDriver& cuda = runtime_->cuda;
  const std::string what = hex(span.range.base) + "-" + hex(span.range.end());
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, agent_.handle};
  CUmemGenericAllocationHandle handle = 0;
  if (in_host_memory(span.kind)) {
    properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    if (cuda.cuMemCreate(&handle, span.range.bytes, &properties, 0) != CUDA_SUCCESS) {
      properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, agent_.handle};
      handle = 0;
      displaced_bytes_ += span.range.bytes;
    }
  }
  if (handle == 0) {
    runtime_->check(cuda.cuMemCreate(&handle, span.range.bytes, &properties, 0),
                    "allocating " + std::to_string(span.range.bytes) + " bytes of device memory");
  }
  runtime_->check(cuda.cuMemMap(span.range.base, span.range.bytes, 0, handle, 0), "mapping " + what);
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, agent_.handle},
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  runtime_->check(cuda.cuMemSetAccess(span.range.base, span.range.bytes, &access, 1),
                  "giving access to " + what);
}

void ReplayMemory::map_host(Span& span, bool) {
  void* const at = reinterpret_cast<void*>(span.range.base);
  map_own(span.range);
  runtime_->check(runtime_->cuda.cuMemHostRegister(at, span.range.bytes,
                                                   kCudaHostRegisterPortable | kCudaHostRegisterDeviceMap),
                  "registering host memory at " + hex(span.range.base));
  CUdeviceptr on_device = 0;
  runtime_->check(runtime_->cuda.cuMemHostGetDevicePointer(&on_device, at, 0), "finding registered memory");
  if (on_device != span.range.base) {
    throw ReplayError(ErrorClass::device,
                      "host memory at " + hex(span.range.base) + " is at another address for the device");
  }
}

void ReplayMemory::place(Runtime& runtime, const Agent& agent, Reservation& reservation, bool) {
  runtime_ = &runtime;
  agent_ = agent;
  const CudaDriver& cuda = runtime.cuda;
  RangeSet windows;
  for (const Span& span : spans_) {
    if (span.is_vmem) windows.unite(RangeSet({rounded(span.range, kWindow)}));
  }
  // First of all: what is mapped from here on must not lie in a window.
  for (const Range& window : windows) {
    CUdeviceptr address = 0;
    runtime.check(cuda.cuMemAddressReserve(&address, window.bytes, 0, window.base, 0),
                  "reserving " + hex(window.base) + "-" + hex(window.end()));
    if (address == window.base) continue;
    // The driver answers a wish that it cannot follow with another address, not with an error.
    cuda.cuMemAddressFree(address, window.bytes);
    throw ReplayError(ErrorClass::collision,
                      "captured device memory lies at " + hex(window.base) + "-" + hex(window.end()) +
                          " and the driver does not give that range: " + mapped_there(window) + " is there");
  }
  runtime.activate(agent);
  pre_.open(files_[0], capture_.pre_bytes, capture_.layout(snapshot::MemoryFile::pre));
  post_.open(files_[1], capture_.post_bytes, capture_.layout(snapshot::MemoryFile::post));
  for (Span& span : spans_) {
    if (span.is_vmem) {
      map_vmem(span);
    } else {
      reservation.release(span.range);
      map_host(span, false);
    }
  }
}

void ReplayMemory::clear(const Span& span) const {
  runtime_->check(runtime_->cuda.cuMemsetD8Async(span.range.base, 0, span.range.bytes, runtime_->stream),
                  "clearing device memory");
  runtime_->check(runtime_->cuda.cuStreamSynchronize(runtime_->stream), "clearing device memory");
}

void ReplayMemory::read(std::uint64_t live, void* out, std::uint64_t bytes) const {
  runtime_->finish_copies();
  Stage* const stage = runtime_->take_stage();
  auto* to = static_cast<unsigned char*>(out);
  CUresult result = CUDA_SUCCESS;
  while (bytes != 0 && result == CUDA_SUCCESS) {
    const std::uint64_t n = std::min(bytes, kStageBytes);
    result = runtime_->cuda.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(stage->data), live, n, stage->stream);
    if (result == CUDA_SUCCESS) result = runtime_->cuda.cuStreamSynchronize(stage->stream);
    if (result == CUDA_SUCCESS) std::memcpy(to, stage->data, n);
    to += n, live += n, bytes -= n;
  }
  runtime_->give_back(stage, false);
  runtime_->check(result, "reading device memory at " + hex(live));
}

void ReplayMemory::write(std::uint64_t live, const void* data, std::uint64_t bytes) const {
  runtime_->finish_copies();
  Stage* const stage = runtime_->take_stage();
  const auto* from = static_cast<const unsigned char*>(data);
  CUresult result = CUDA_SUCCESS;
  while (bytes != 0 && result == CUDA_SUCCESS) {
    const std::uint64_t n = std::min(bytes, kStageBytes);
    std::memcpy(stage->data, from, n);
    result = runtime_->cuda.cuMemcpyAsync(live, reinterpret_cast<CUdeviceptr>(stage->data), n, stage->stream);
    if (result == CUDA_SUCCESS) result = runtime_->cuda.cuStreamSynchronize(stage->stream);
    from += n, live += n, bytes -= n;
  }
  runtime_->give_back(stage, false);
  runtime_->check(result, "writing device memory at " + hex(live));
}

void ReplayMemory::fill_with(std::uint64_t live, unsigned char value, std::uint64_t bytes) const {
  runtime_->finish_copies();
  runtime_->check(runtime_->cuda.cuMemsetD8Async(live, value, bytes, runtime_->stream),
                  "filling device memory");
  runtime_->check(runtime_->cuda.cuStreamSynchronize(runtime_->stream), "filling device memory");
}

std::uint64_t ReplayMemory::to_block_end(const unsigned char* before) const {
  if (pre_.data() == nullptr || before < pre_.data() || before >= pre_.data() + pre_.bytes()) return 0;
  const auto offset = static_cast<std::uint64_t>(before - pre_.data());
  return snapshot::kChecksumBlock - offset % snapshot::kChecksumBlock;
}

std::vector<bool> ReplayMemory::as_captured(const std::vector<Block>& blocks) const {
  std::vector<bool> same(blocks.size(), false);
  if (blocks.empty()) return same;
  runtime_->finish_copies();
  std::vector<std::uint64_t> addresses;
  addresses.reserve(blocks.size());
  for (const Block& block : blocks) addresses.push_back(block.live);
  const std::vector<std::uint64_t> hashes = hash_blocks(*runtime_, addresses);
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const auto offset = static_cast<std::uint64_t>(blocks[i].before - pre_.data());
    same[i] = capture_.block_is(snapshot::MemoryFile::pre, offset / snapshot::kChecksumBlock, hashes[i]);
  }
  return same;
}

ReplayMemory::Upload::Upload(const ReplayMemory& memory) : memory_(memory) {}

ReplayMemory::Upload::~Upload() {
  if (stage_ != nullptr) memory_.runtime_->give_back(stage_, true);
}

void ReplayMemory::Upload::put(std::uint64_t live, const unsigned char* data, std::uint64_t bytes) {
  if (stage_ == nullptr) stage_ = memory_.runtime_->take_stage();
  std::memcpy(stage_->data + staged_, data, bytes);
  if (!copies_.empty() && copies_.back().live + copies_.back().bytes == live) {
    copies_.back().bytes += bytes;
  } else {
    copies_.push_back({live, staged_, bytes});
  }
  staged_ += bytes;
}

void ReplayMemory::Upload::send() {
  for (const Copy& copy : copies_) {
    const auto from = reinterpret_cast<CUdeviceptr>(stage_->data + copy.offset);
    memory_.runtime_->check(memory_.runtime_->cuda.cuMemcpyAsync(copy.live, from, copy.bytes, stage_->stream),
                            "writing device memory at " + hex(copy.live));
  }
  copies_.clear();
  staged_ = 0;
}

}  // namespace kerncap::replay
