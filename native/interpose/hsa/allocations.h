// All memory that the program got from the runtime, by address.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "abi/hsa.h"
#include "interpose/common/allocation.h"
#include "interpose/hsa/agents.h"

namespace kerncap::interpose {

class Allocations {
 public:
  explicit Allocations(const Agents& agents) : agents_(agents) {}

  void pool_allocated(abi::hsa_amd_memory_pool_t pool, void* ptr, std::size_t bytes);
  void region_allocated(abi::hsa_region_t region, void* ptr, std::size_t bytes);
  void freed(void* ptr);
  void access_allowed(const void* ptr, std::uint32_t count, const abi::hsa_agent_t* agents);

  // The program's own memory, locked for `agents` (none: for all). Locks nest.
  void locked(void* host, std::size_t bytes, const abi::hsa_agent_t* agents, int count, void* agent_ptr);
  void unlocked(void* host);

  // hsa_amd_svm_attributes_set: memory that host and device share.
  void svm_attributes(void* ptr, std::size_t bytes, const abi::hsa_amd_svm_attribute_pair_t* list,
                      std::size_t count);

  void attached(void* ptr, std::size_t bytes, std::uint32_t count, const abi::hsa_agent_t* agents,
                const char* how);
  void detached(void* ptr);

  void handle_created(std::uint64_t handle, abi::hsa_amd_memory_pool_t pool);
  void handle_imported(std::uint64_t handle);
  void mapped(void* va, std::size_t bytes, std::uint64_t handle);
  void unmapped(void* va, std::size_t bytes);
  void vmem_access(void* va, std::size_t bytes, const abi::hsa_amd_memory_access_desc_t* list,
                   std::size_t count);

  // The sizes of everything now, summed.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  // Everything now, in order of address; no two overlap.
  std::vector<Allocation> all() const;

 private:
  struct PoolInfo {
    bool gpu = false;
    std::uint64_t agent = 0;
    std::uint32_t flags = 0;
    bool everyone = false;
  };
  PoolInfo pool_info(abi::hsa_amd_memory_pool_t pool);
  void learn_pools();
  void insert(Allocation allocation);
  void erase_range(std::uint64_t begin, std::uint64_t end);
  void erase(std::uint64_t address);

  const Agents& agents_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Allocation> by_address_;
  std::atomic<std::uint64_t> bytes_{0};
  std::unordered_map<std::uint64_t, PoolInfo> pools_;
  std::unordered_map<std::uint64_t, PoolInfo> handles_;  // vmem
  struct Lock {
    std::uint64_t address;  // agent_ptr
    unsigned depth;
  };
  std::unordered_map<std::uint64_t, Lock> locks_;  // by host address
};

}  // namespace kerncap::interpose
