#include "interpose/hsa/allocations.h"

#include <algorithm>

#include "interpose/hsa/api.h"

namespace kerncap::interpose {

using namespace abi;  // NOLINT: the ABI's own names
using snapshot::RegionKind;

namespace {

std::uint64_t number(const void* ptr) { return reinterpret_cast<std::uint64_t>(ptr); }

RegionKind pool_kind(bool gpu, std::uint32_t flags) {
  if (!gpu) {
    return (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) != 0 ? RegionKind::kernarg
                                                                       : RegionKind::host;
  }
  return (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) != 0 ? RegionKind::device
                                                                       : RegionKind::device_fine;
}

}  // namespace

void Allocations::learn_pools() {
  struct Context {
    Allocations* self;
    const AgentInfo* agent;
  };
  for (const AgentInfo& agent : agents_.all()) {
    Context context{this, &agent};
    api().amd.hsa_amd_agent_iterate_memory_pools_fn(
        agent.handle,
        [](hsa_amd_memory_pool_t pool, void* data) {
          const auto* c = static_cast<const Context*>(data);
          PoolInfo info;
          info.gpu = c->agent->gpu;
          info.agent = c->agent->handle.handle;
          auto& get = api().amd.hsa_amd_memory_pool_get_info_fn;
          get(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &info.flags);
          get(pool, HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL, &info.everyone);
          c->self->pools_[pool.handle] = info;
          return HSA_STATUS_SUCCESS;
        },
        &context);
  }
}

Allocations::PoolInfo Allocations::pool_info(hsa_amd_memory_pool_t pool) {
  if (pools_.empty()) learn_pools();
  const auto found = pools_.find(pool.handle);
  return found != pools_.end() ? found->second : PoolInfo{};
}

void Allocations::erase_range(std::uint64_t begin, std::uint64_t end) {
  auto it = by_address_.lower_bound(begin);
  if (it != by_address_.begin() && std::prev(it)->second.end() > begin) --it;
  while (it != by_address_.end() && it->second.address < end) {
    Allocation old = std::move(it->second);
    it = by_address_.erase(it);
    bytes_ -= old.bytes;
    // What sticks out on either side stays.
    if (old.address < begin) {
      Allocation left = old;
      left.bytes = begin - old.address;
      bytes_ += left.bytes;
      by_address_[left.address] = std::move(left);
    }
    if (old.end() > end) {
      Allocation right = old;
      if (right.host_address != 0) right.host_address += end - old.address;
      right.bytes = old.end() - end;
      bytes_ += right.bytes;
      right.address = end;
      it = std::next(by_address_.emplace(end, std::move(right)).first);
    }
  }
}

void Allocations::insert(Allocation allocation) {
  if (allocation.address == 0 || allocation.bytes == 0) return;
  // An overlap means that the old one went without our seeing it (munmap of managed memory).
  erase_range(allocation.address, allocation.end());
  bytes_ += allocation.bytes;
  by_address_[allocation.address] = std::move(allocation);
}

void Allocations::erase(std::uint64_t address) {
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return;
  bytes_ -= found->second.bytes;
  by_address_.erase(found);
}

void Allocations::pool_allocated(hsa_amd_memory_pool_t pool, void* ptr, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const PoolInfo info = pool_info(pool);
  Allocation a;
  a.address = number(ptr);
  a.bytes = bytes;
  a.kind = pool_kind(info.gpu, info.flags);
  a.pool_flags = info.flags;
  a.owner = info.agent;
  a.everyone = info.everyone || !info.gpu;  // system memory: a pointer to it in a kernel's hands is meant
  insert(std::move(a));
}

void Allocations::region_allocated(hsa_region_t region, void* ptr, std::size_t bytes) {
  // ROCr and the simulated runtime use one handle space for regions and pools.
  pool_allocated({region.handle}, ptr, bytes);
  // Memory from hsa_memory_allocate is visible to every agent that can reach it at all.
  const std::lock_guard lock(mutex_);
  const auto found = by_address_.find(number(ptr));
  if (found != by_address_.end() && found->second.host_memory()) found->second.everyone = true;
}

void Allocations::freed(void* ptr) {
  const std::lock_guard lock(mutex_);
  erase(number(ptr));
}

void Allocations::access_allowed(const void* ptr, std::uint32_t count, const hsa_agent_t* agents) {
  const std::lock_guard lock(mutex_);
  auto it = by_address_.upper_bound(number(ptr));
  if (it == by_address_.begin()) return;
  Allocation& a = std::prev(it)->second;
  if (number(ptr) >= a.end()) return;
  a.agents.clear();  // each call replaces the list
  for (std::uint32_t i = 0; i < count; ++i) a.agents.push_back(agents[i].handle);
}

void Allocations::locked(void* host, std::size_t bytes, const hsa_agent_t* agents, int count,
                         void* agent_ptr) {
  const std::lock_guard lock(mutex_);
  Lock& held = locks_[number(host)];
  if (++held.depth > 1) return;
  held.address = number(agent_ptr);
  Allocation a;
  a.address = number(agent_ptr);
  a.bytes = bytes;
  a.host_address = number(host);
  a.kind = RegionKind::registered;
  a.everyone = agents == nullptr || count == 0;
  for (int i = 0; i < count && agents != nullptr; ++i) a.agents.push_back(agents[i].handle);
  insert(std::move(a));
}

void Allocations::unlocked(void* host) {
  const std::lock_guard lock(mutex_);
  const auto found = locks_.find(number(host));
  if (found == locks_.end() || --found->second.depth != 0) return;
  erase(found->second.address);
  locks_.erase(found);
}

void Allocations::svm_attributes(void* ptr, std::size_t bytes, const hsa_amd_svm_attribute_pair_t* list,
                                 std::size_t count) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t begin = number(ptr), end = begin + bytes;
  auto it = by_address_.upper_bound(begin);
  Allocation a;
  if (it != by_address_.begin() && std::prev(it)->second.end() >= end) a = std::prev(it)->second;
  if (a.bytes != 0 && a.kind != RegionKind::managed) return;  // attributes of memory that is known already
  a.address = begin;
  a.bytes = bytes;
  a.kind = RegionKind::managed;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t agent = list[i].value;
    if (list[i].attribute == HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE ||
        list[i].attribute == HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE) {
      if (!a.accessible_to(agent)) a.agents.push_back(agent);
    } else if (list[i].attribute == HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS) {
      std::erase(a.agents, agent);
    }
  }
  insert(std::move(a));
}

void Allocations::attached(void* ptr, std::size_t bytes, std::uint32_t count, const hsa_agent_t* agents,
                           const char* how) {
  const std::lock_guard lock(mutex_);
  Allocation a;
  a.address = number(ptr);
  a.bytes = bytes;
  a.everyone = count == 0;
  for (std::uint32_t i = 0; i < count; ++i) a.agents.push_back(agents[i].handle);
  a.refusal = std::string("memory of another process or device (") + how +
              "), which may change at any time and cannot be put back as what it is";
  insert(std::move(a));
}

void Allocations::detached(void* ptr) { freed(ptr); }

void Allocations::handle_created(std::uint64_t handle, hsa_amd_memory_pool_t pool) {
  const std::lock_guard lock(mutex_);
  handles_[handle] = pool_info(pool);
}

void Allocations::handle_imported(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  handles_[handle] = {};
}

void Allocations::mapped(void* va, std::size_t bytes, std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle);
  Allocation a;
  a.address = number(va);
  a.bytes = bytes;
  a.kind = RegionKind::vmem;
  if (found != handles_.end()) {
    a.pool_flags = found->second.flags;
    // Mapping gives nobody access; set_access does, the owner included.
  }
  insert(std::move(a));
}

void Allocations::unmapped(void* va, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  erase_range(number(va), number(va) + bytes);
}

void Allocations::vmem_access(void* va, std::size_t bytes, const hsa_amd_memory_access_desc_t* list,
                              std::size_t count) {
  const std::lock_guard lock(mutex_);
  for (auto it = by_address_.lower_bound(number(va));
       it != by_address_.end() && it->first < number(va) + bytes; ++it) {
    Allocation& a = it->second;
    for (std::size_t i = 0; i < count; ++i) {
      std::erase(a.agents, list[i].agent_handle.handle);
      if (list[i].permissions != HSA_ACCESS_PERMISSION_NONE) a.agents.push_back(list[i].agent_handle.handle);
    }
  }
}

std::vector<Allocation> Allocations::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Allocation> list;
  list.reserve(by_address_.size());
  for (const auto& [address, allocation] : by_address_) list.push_back(allocation);
  return list;
}

}  // namespace kerncap::interpose
