#include "sim/hsa/vmem.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/hsa/runtime.h"
#include "sim/within.h"

namespace kerncap::sim::rt {

using namespace kerncap::abi;  // NOLINT

VirtualMemory::Storage::~Storage() {
  if (fd >= 0) close(fd);
}

hsa_status_t VirtualMemory::reserve(void** out, std::uint64_t size, std::uint64_t address,
                                    std::uint64_t alignment) {
  if (size == 0 || size % kPageBytes != 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (alignment != 0 && (alignment < kPageBytes || (alignment & (alignment - 1)) != 0))
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* mapped = MAP_FAILED;
  if (address != 0)
    mapped = mmap(reinterpret_cast<void*>(address), size, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped == MAP_FAILED) {
    // Map more than is wanted, and cut an aligned piece out of it.
    const std::uint64_t extra = alignment > kPageBytes ? alignment : 0;
    mapped = mmap(nullptr, size + extra, PROT_NONE, kFlags, -1, 0);
    if (mapped == MAP_FAILED) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    if (extra != 0) {
      const auto base = reinterpret_cast<std::uint64_t>(mapped);
      const std::uint64_t aligned = (base + alignment - 1) & ~(alignment - 1);
      if (aligned != base) munmap(mapped, aligned - base);
      if (std::uint64_t tail = base + size + extra - (aligned + size); tail != 0)
        munmap(reinterpret_cast<void*>(aligned + size), tail);
      mapped = reinterpret_cast<void*>(aligned);
    }
  }
  runtime_->memory.claim(reinterpret_cast<std::uint64_t>(mapped), size);
  std::lock_guard lock(mutex_);
  reservations_[reinterpret_cast<std::uint64_t>(mapped)] = size;
  *out = mapped;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t VirtualMemory::free(void* address, std::uint64_t size) {
  const auto base = reinterpret_cast<std::uint64_t>(address);
  std::lock_guard lock(mutex_);
  auto it = reservations_.find(base);
  if (it == reservations_.end() || it->second != size) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  auto mapped = mappings_.lower_bound(base);
  if (mapped != mappings_.end() && mapped->first < base + size) return HSA_STATUS_ERROR_RESOURCE_FREE;
  munmap(address, size);
  reservations_.erase(it);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t VirtualMemory::create(Pool* pool, std::uint64_t size, hsa_amd_memory_type_t type,
                                   std::uint64_t* handle) {
  if (size == 0 || size % kPageBytes != 0 || type > MEMORY_TYPE_PINNED)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (pool->is_system() || pool->segment != HSA_REGION_SEGMENT_GLOBAL)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  auto storage = std::make_shared<Storage>();
  storage->fd = memfd_create("kerncap-vmem", MFD_CLOEXEC);
  if (storage->fd < 0 || ftruncate(storage->fd, static_cast<off_t>(size)) != 0)
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  storage->size = size;
  storage->pool = pool;
  storage->type = type;
  std::lock_guard lock(mutex_);
  *handle = ++last_handle_;
  handles_[*handle] = {std::move(storage), 1};
  return HSA_STATUS_SUCCESS;
}

hsa_status_t VirtualMemory::release(std::uint64_t handle) {
  std::lock_guard lock(mutex_);
  auto it = handles_.find(handle);
  if (it == handles_.end()) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  if (--it->second.references == 0) handles_.erase(it);  // mappings keep the memory
  return HSA_STATUS_SUCCESS;
}

hsa_status_t VirtualMemory::map(void* address, std::uint64_t size, std::uint64_t offset,
                                std::uint64_t handle) {
  const auto base = reinterpret_cast<std::uint64_t>(address);
  if (size == 0 || base % kPageBytes != 0 || size % kPageBytes != 0 || offset % kPageBytes != 0)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::lock_guard lock(mutex_);
  auto reserved = reservations_.upper_bound(base);
  if (reserved == reservations_.begin()) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  --reserved;
  if (!within(base - reserved->first, size, reserved->second)) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  auto next = mappings_.upper_bound(base);
  if (next != mappings_.end() && next->first < base + size) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (next != mappings_.begin() && std::prev(next)->first + std::prev(next)->second.size > base)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  auto found = handles_.find(handle);
  if (found == handles_.end()) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  std::shared_ptr<Storage> storage = found->second.storage;
  if (!within(offset, size, storage->size)) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  // The process itself may always read and write: copies and the simulated GPU are part of it.
  if (mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, storage->fd,
           static_cast<off_t>(offset)) == MAP_FAILED)
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  Block block;
  block.base = base;
  block.size = size;
  block.origin = Block::Origin::vmem;
  block.pool = storage->pool;
  runtime_->memory.add_block(block);
  mappings_[base] = {size, std::move(storage), handle, {}};
  return HSA_STATUS_SUCCESS;
}

hsa_status_t VirtualMemory::unmap(void* address, std::uint64_t size) {
  const auto base = reinterpret_cast<std::uint64_t>(address);
  std::lock_guard lock(mutex_);
  auto it = mappings_.find(base);
  if (it == mappings_.end() || it->second.size != size) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  for (const auto& [agent, permission] : it->second.access)
    if (agent->is_gpu && permission != HSA_ACCESS_PERMISSION_NONE) agent->memory.remove(base);
  runtime_->memory.remove_block(base);
  mmap(address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  mappings_.erase(it);
  return HSA_STATUS_SUCCESS;
}

void VirtualMemory::set_gpu_access(std::uint64_t base, Mapping& mapping, Agent* agent,
                                   hsa_access_permission_t wanted) {
  hsa_access_permission_t& current = mapping.access[agent];
  if (agent->is_gpu && current != wanted) {
    if (current != HSA_ACCESS_PERMISSION_NONE) agent->memory.remove(base);
    if (wanted != HSA_ACCESS_PERMISSION_NONE)
      agent->memory.add({base, mapping.size, wanted != HSA_ACCESS_PERMISSION_RO, "vmem"});
  }
  current = wanted;
}

hsa_status_t VirtualMemory::set_access(void* address, std::uint64_t size,
                                       const hsa_amd_memory_access_desc_t* list, std::size_t count) {
  const auto base = reinterpret_cast<std::uint64_t>(address);
  std::lock_guard lock(mutex_);
  // Whole mappings, without a gap, from the start of one.
  std::uint64_t at = base;
  auto it = mappings_.find(base);
  while (at < base + size) {
    if (it == mappings_.end() || it->first != at) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    at += it->second.size;
    ++it;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (runtime_->find_agent(list[i].agent_handle) == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
    if (list[i].permissions > HSA_ACCESS_PERMISSION_RW) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
  for (auto mapping = mappings_.find(base); mapping != mappings_.end() && mapping->first < base + size;
       ++mapping) {
    GpuSet gpus = 0;
    for (std::size_t i = 0; i < count; ++i)
      set_gpu_access(mapping->first, mapping->second, runtime_->find_agent(list[i].agent_handle),
                     list[i].permissions);
    for (const auto& [agent, permission] : mapping->second.access)
      if (agent->is_gpu && permission != HSA_ACCESS_PERMISSION_NONE) gpus |= GpuSet{1} << agent->gpu_index;
    Block block;
    block.base = mapping->first;
    block.size = mapping->second.size;
    block.origin = Block::Origin::vmem;
    block.pool = mapping->second.storage->pool;
    block.gpus = gpus;
    runtime_->memory.add_block(block);
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t VirtualMemory::get_access(void* address, Agent* agent, hsa_access_permission_t* out) const {
  const auto at = reinterpret_cast<std::uint64_t>(address);
  std::lock_guard lock(mutex_);
  auto it = mappings_.upper_bound(at);
  if (it == mappings_.begin()) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  --it;
  if (at >= it->first + it->second.size) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  auto found = it->second.access.find(agent);
  *out = found == it->second.access.end() ? HSA_ACCESS_PERMISSION_NONE : found->second;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t VirtualMemory::export_handle(std::uint64_t handle, int* fd) const {
  std::lock_guard lock(mutex_);
  auto it = handles_.find(handle);
  if (it == handles_.end()) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *fd = fcntl(it->second.storage->fd, F_DUPFD_CLOEXEC, 0);
  return *fd >= 0 ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

hsa_status_t VirtualMemory::import_handle(int fd, std::uint64_t* handle) {
  struct stat info{};
  if (fstat(fd, &info) != 0 || info.st_size <= 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  auto storage = std::make_shared<Storage>();
  storage->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (storage->fd < 0) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  storage->size = static_cast<std::uint64_t>(info.st_size);
  storage->pool = runtime_->agents()[1]->pools.front().get();
  std::lock_guard lock(mutex_);
  *handle = ++last_handle_;
  handles_[*handle] = {std::move(storage), 1};
  return HSA_STATUS_SUCCESS;
}

hsa_status_t VirtualMemory::retain(void* address, std::uint64_t* handle) {
  std::lock_guard lock(mutex_);
  auto it = mappings_.find(reinterpret_cast<std::uint64_t>(address));
  if (it == mappings_.end()) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  // The handle may have been released while its memory stayed mapped: it is back then.
  auto [found, fresh] = handles_.try_emplace(it->second.handle, Handle{it->second.storage, 0});
  ++found->second.references;
  *handle = found->first;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t VirtualMemory::properties(std::uint64_t handle, Pool** pool, hsa_amd_memory_type_t* type) const {
  std::lock_guard lock(mutex_);
  auto it = handles_.find(handle);
  if (it == handles_.end()) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  *pool = it->second.storage->pool;
  *type = it->second.storage->type;
  return HSA_STATUS_SUCCESS;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> VirtualMemory::find_reservation(
    std::uint64_t address) const {
  std::lock_guard lock(mutex_);
  auto it = reservations_.upper_bound(address);
  if (it == reservations_.begin()) return std::nullopt;
  --it;
  if (address >= it->first + it->second) return std::nullopt;
  return *it;
}

}  // namespace kerncap::sim::rt
