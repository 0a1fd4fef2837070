#include "sim/hsa/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <tuple>

#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

using namespace kerncap::abi;  // NOLINT

GpuSet owner_bit(const Pool* pool) {
  return pool != nullptr && pool->agent->is_gpu ? GpuSet{1} << pool->agent->gpu_index : 0;
}

// The driver aligns allocations of 2 MiB and more to that (libhsakmt, "huge pages"). The device library's
// malloc relies on it: it finds the slab of a block by masking the block's address.
constexpr std::uint64_t kLargePageBytes = 2 << 20;

// MAP_FAILED where there is no room.
void* map_aligned(std::uint64_t bytes, std::uint64_t alignment, int flags) {
  const std::uint64_t reserved = bytes + alignment - kPageBytes;
  void* mapped = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED) return mapped;
  const auto base = reinterpret_cast<std::uint64_t>(mapped);
  const std::uint64_t aligned = (base + alignment - 1) & ~(alignment - 1);
  if (aligned > base) munmap(mapped, aligned - base);
  if (aligned + bytes < base + reserved)
    munmap(reinterpret_cast<void*>(aligned + bytes), base + reserved - (aligned + bytes));
  return reinterpret_cast<void*>(aligned);
}

const char* kind_of(const Block& block) {
  switch (block.origin) {
    case Block::Origin::code:
      return "code";
    case Block::Origin::vmem:
      return "vmem";
    case Block::Origin::locked:
      return "host";
    case Block::Origin::pool:
      break;
  }
  return block.pool->kind;
}

}  // namespace

GpuSet Memory::all_gpus() const { return (GpuSet{1} << runtime_->config().gpu_count) - 1; }

std::optional<GpuSet> Memory::gpu_set(const hsa_agent_t* agents, std::size_t count) const {
  GpuSet set = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Agent* agent = runtime_->find_agent(agents[i]);
    if (agent == nullptr) return std::nullopt;
    if (agent->is_gpu) set |= GpuSet{1} << agent->gpu_index;
  }
  return set;
}

std::map<std::uint64_t, Block>::iterator Memory::locate(std::uint64_t address) {
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return blocks_.end();
  auto it = std::prev(after);
  return address < it->second.base + it->second.size ? it : blocks_.end();
}

void Memory::publish(const Block& block, GpuSet gpus) {
  for (const auto& agent : runtime_->agents())
    if (agent->is_gpu && (gpus >> agent->gpu_index & 1) != 0)
      agent->memory.add({block.base, block.size, true, kind_of(block)});
}

void Memory::withdraw(const Block& block, GpuSet gpus) {
  for (const auto& agent : runtime_->agents())
    if (agent->is_gpu && (gpus >> agent->gpu_index & 1) != 0) agent->memory.remove(block.base);
}

hsa_status_t Memory::allocate(Pool* pool, std::uint64_t size, Block::Origin origin, GpuSet gpus, void** out,
                              std::uint64_t wanted) {
  if (size == 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (size > pool->size) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  const std::uint64_t bytes = page_up(size);
  {
    std::lock_guard lock(mutex_);
    std::uint64_t& used = used_[pool->agent];
    if (used + bytes > pool->size) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    used += bytes;
  }
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* mapped = MAP_FAILED;
  std::uint64_t guard = kPageBytes;
  if (wanted != 0) {
    // Without a guard: the page behind may be in use.
    mapped = mmap(reinterpret_cast<void*>(wanted), bytes, PROT_READ | PROT_WRITE,
                  kFlags | MAP_FIXED_NOREPLACE, -1, 0);
    guard = 0;
  }
  if (mapped == MAP_FAILED) {
    guard = kPageBytes;
    mapped = map_aligned(bytes + guard, bytes >= kLargePageBytes ? kLargePageBytes : kPageBytes, kFlags);
  }
  if (mapped == MAP_FAILED) {
    std::lock_guard lock(mutex_);
    used_[pool->agent] -= bytes;
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  }
  if (guard != 0) mprotect(static_cast<char*>(mapped) + bytes, guard, PROT_NONE);
  Block block;
  block.base = reinterpret_cast<std::uint64_t>(mapped);
  block.size = bytes;
  block.origin = origin;
  block.pool = pool;
  block.gpus = gpus | owner_bit(pool);
  block.mapping = bytes + guard;
  claim(block.base, block.size);
  add_block(block);
  // Code goes in by segments (the loader publishes them): parts of it are read-only.
  if (origin != Block::Origin::code) publish(block, block.gpus);
  *out = mapped;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t Memory::free(void* pointer) {
  if (pointer == nullptr) return HSA_STATUS_SUCCESS;
  Block block;
  {
    std::lock_guard lock(mutex_);
    auto it = blocks_.find(reinterpret_cast<std::uint64_t>(pointer));
    if (it == blocks_.end() || it->second.mapping == 0) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    block = std::move(it->second);
    blocks_.erase(it);
    used_[block.pool->agent] -= block.size;
  }
  for (auto [callback, data] : block.on_free) callback(pointer, data);
  if (block.origin != Block::Origin::code) withdraw(block, block.gpus);
  munmap(pointer, block.mapping);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t Memory::allow_access(GpuSet gpus, const void* pointer) {
  std::lock_guard lock(mutex_);
  auto it = locate(reinterpret_cast<std::uint64_t>(pointer));
  if (it == blocks_.end()) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  Block& block = it->second;
  if (block.origin != Block::Origin::pool) return HSA_STATUS_SUCCESS;
  gpus |= owner_bit(block.pool);
  publish(block, gpus & ~block.gpus);
  withdraw(block, block.gpus & ~gpus);
  block.gpus = gpus;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t Memory::lock(void* host, std::uint64_t size, GpuSet gpus) {
  const std::uint64_t base = reinterpret_cast<std::uint64_t>(host);
  std::lock_guard lock(mutex_);
  auto it = locate(base);
  if (it != blocks_.end() && it->second.origin != Block::Origin::locked) {
    // Memory of the runtime's own is there already; it only becomes accessible to more GPUs.
    if (it->second.origin == Block::Origin::pool) {
      publish(it->second, gpus & ~it->second.gpus);
      it->second.gpus |= gpus;
    }
    return HSA_STATUS_SUCCESS;
  }
  locks_.emplace(base, Lock{size, gpus});
  hold_pieces(base, size, gpus, "host", false);
  Block& block = blocks_[base];
  block.base = base;
  block.origin = Block::Origin::locked;
  block.size = std::max(block.size, size);
  block.gpus |= gpus;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t Memory::unlock(void* host) {
  const std::uint64_t base = reinterpret_cast<std::uint64_t>(host);
  std::lock_guard lock(mutex_);
  auto [first, last] = locks_.equal_range(base);
  if (first == last)
    return locate(base) == blocks_.end() ? HSA_STATUS_ERROR_INVALID_ALLOCATION : HSA_STATUS_SUCCESS;
  auto newest = std::prev(last);
  drop_pieces(base, newest->second.size, newest->second.gpus, false);
  locks_.erase(newest);
  Block& block = blocks_[base];
  block.size = 0;
  block.gpus = 0;
  std::tie(first, last) = locks_.equal_range(base);
  for (auto it = first; it != last; ++it) {
    block.size = std::max(block.size, it->second.size);
    block.gpus |= it->second.gpus;
  }
  if (block.size == 0) blocks_.erase(base);
  return HSA_STATUS_SUCCESS;
}

// Hardware maps whole pages, and locks may overlap: pieces never move or shrink while held, so that a running
// kernel never loses access for a moment.
void Memory::hold_pieces(std::uint64_t base, std::uint64_t size, GpuSet gpus, const char* kind, bool sticky) {
  const std::uint64_t first = page_down(base), last = page_up(base + size);
  for (const auto& agent : runtime_->agents()) {
    if (!agent->is_gpu || (gpus >> agent->gpu_index & 1) == 0) continue;
    auto& pieces = pieces_[agent->gpu_index];
    std::uint64_t at = first;
    auto it = pieces.upper_bound(at);
    if (it != pieces.begin() && std::prev(it)->first + std::prev(it)->second.size > at) --it;
    while (at < last) {
      if (it != pieces.end() && it->first <= at) {
        it->second.sticky |= sticky;
        if (!sticky) ++it->second.holders;
        at = it->first + it->second.size;
        ++it;
        continue;
      }
      const std::uint64_t end = it != pieces.end() ? std::min(last, it->first) : last;
      // Refused where an allocation of the runtime's own lies: that one is accessible by itself.
      const bool registered = agent->memory.add({at, end - at, true, kind});
      it = std::next(pieces.emplace(at, Piece{end - at, sticky ? 0u : 1u, sticky, registered}).first);
      at = end;
    }
  }
}

void Memory::drop_pieces(std::uint64_t base, std::uint64_t size, GpuSet gpus, bool sticky) {
  const std::uint64_t first = page_down(base), last = page_up(base + size);
  for (const auto& agent : runtime_->agents()) {
    if (!agent->is_gpu || (gpus >> agent->gpu_index & 1) == 0) continue;
    auto& pieces = pieces_[agent->gpu_index];
    auto it = pieces.upper_bound(first);
    if (it != pieces.begin() && std::prev(it)->first + std::prev(it)->second.size > first) --it;
    while (it != pieces.end() && it->first < last) {
      if (sticky)
        it->second.sticky = false;
      else if (it->second.holders > 0)
        --it->second.holders;
      if (it->second.holders == 0 && !it->second.sticky) {
        if (it->second.registered) agent->memory.remove(it->first);
        it = pieces.erase(it);
      } else {
        ++it;
      }
    }
  }
}

void Memory::expose_host_range(std::uint64_t base, std::uint64_t size, GpuSet gpus, const char* kind) {
  std::lock_guard lock(mutex_);
  hold_pieces(base, size, gpus, kind, true);
}

void Memory::hide_host_range(std::uint64_t base, std::uint64_t size, GpuSet gpus) {
  std::lock_guard lock(mutex_);
  drop_pieces(base, size, gpus, true);
}

void Memory::claim(std::uint64_t base, std::uint64_t size) {
  std::lock_guard lock(mutex_);
  for (const auto& agent : runtime_->agents()) {
    if (!agent->is_gpu) continue;
    auto& pieces = pieces_[agent->gpu_index];
    auto it = pieces.upper_bound(base);
    if (it != pieces.begin() && std::prev(it)->first + std::prev(it)->second.size > base) --it;
    while (it != pieces.end() && it->first < base + size) {
      if (it->second.registered) agent->memory.remove(it->first);
      it = pieces.erase(it);
    }
  }
}

void Memory::add_block(const Block& block) {
  std::lock_guard lock(mutex_);
  blocks_[block.base] = block;
}

void Memory::remove_block(std::uint64_t base) {
  std::lock_guard lock(mutex_);
  blocks_.erase(base);
}

std::optional<Block> Memory::find(std::uint64_t address) const {
  std::lock_guard lock(mutex_);
  auto it = const_cast<Memory*>(this)->locate(address);
  if (it == blocks_.end()) return std::nullopt;
  return it->second;
}

bool Memory::set_user_data(std::uint64_t address, void* data) {
  std::lock_guard lock(mutex_);
  auto it = locate(address);
  if (it == blocks_.end()) return false;
  it->second.user_data = data;
  return true;
}

bool Memory::add_free_callback(void* base, hsa_amd_deallocation_callback_t callback, void* data) {
  std::lock_guard lock(mutex_);
  auto it = blocks_.find(reinterpret_cast<std::uint64_t>(base));
  if (it == blocks_.end() || it->second.mapping == 0) return false;
  it->second.on_free.emplace_back(callback, data);
  return true;
}

bool Memory::remove_free_callback(void* base, hsa_amd_deallocation_callback_t callback) {
  std::lock_guard lock(mutex_);
  auto it = blocks_.find(reinterpret_cast<std::uint64_t>(base));
  if (it == blocks_.end()) return false;
  return std::erase_if(it->second.on_free,
                       [callback](const auto& entry) { return entry.first == callback; }) != 0;
}

std::uint64_t Memory::available(const Agent& agent) const {
  std::lock_guard lock(mutex_);
  auto it = used_.find(&agent);
  const std::uint64_t total = agent.pools.front()->size;
  return it == used_.end() ? total : total - std::min(total, it->second);
}

bool Memory::in_bounds(const void* address, std::uint64_t size) const {
  std::optional<Block> block = find(reinterpret_cast<std::uint64_t>(address));
  if (!block || block->origin == Block::Origin::locked || block->origin == Block::Origin::vmem) return true;
  return reinterpret_cast<std::uint64_t>(address) + size <= block->base + block->size;
}

}  // namespace kerncap::sim::rt
