// Every range of memory that the runtime knows: pool allocations, locked host memory, code, mapped virtual
// memory. One table for the whole process answers pointer queries; what a GPU may touch of it goes into that
// GPU's AddressSpace.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "abi/hsa.h"
#include "sim/hsa/agent.h"

namespace kerncap::sim::rt {

class Runtime;

inline constexpr std::uint64_t kPageBytes = 4096;
inline std::uint64_t page_down(std::uint64_t value) { return value & ~(kPageBytes - 1); }
inline std::uint64_t page_up(std::uint64_t value) { return page_down(value + kPageBytes - 1); }

// A set of GPUs, by index.
using GpuSet = std::uint32_t;

struct Block {
  enum class Origin { pool, locked, code, vmem };
  std::uint64_t base = 0;
  std::uint64_t size = 0;  // bytes, whole pages
  Origin origin = Origin::pool;
  Pool* pool = nullptr;  // null for memory that is not the runtime's (locked)
  GpuSet gpus = 0;       // who may access it
  void* user_data = nullptr;
  std::uint64_t mapping = 0;  // bytes to unmap, guard included; 0: not ours to unmap
  std::vector<std::pair<abi::hsa_amd_deallocation_callback_t, void*>> on_free;
};

class Memory {
 public:
  explicit Memory(Runtime* runtime) : runtime_(runtime) {}

  // Whole pages, followed by a page that nothing may touch. `gpus` have access besides the pool's own agent.
  // With `wanted`, at that address where it is free.
  abi::hsa_status_t allocate(Pool* pool, std::uint64_t size, Block::Origin origin, GpuSet gpus, void** out,
                             std::uint64_t wanted = 0);
  abi::hsa_status_t free(void* pointer);

  // Replaces the GPUs that have access by `gpus` and the owner.
  abi::hsa_status_t allow_access(GpuSet gpus, const void* pointer);

  abi::hsa_status_t lock(void* host, std::uint64_t size, GpuSet gpus);
  abi::hsa_status_t unlock(void* host);

  // Host memory that stays accessible until somebody maps something else there (SVM ranges).
  void expose_host_range(std::uint64_t base, std::uint64_t size, GpuSet gpus, const char* kind);
  void hide_host_range(std::uint64_t base, std::uint64_t size, GpuSet gpus);
  // Forgets exposed host ranges that overlap freshly mapped memory: their old mapping is gone.
  void claim(std::uint64_t base, std::uint64_t size);

  // Blocks whose pages someone else manages (vmem).
  void add_block(const Block& block);
  void remove_block(std::uint64_t base);

  [[nodiscard]] std::optional<Block> find(std::uint64_t address) const;
  bool set_user_data(std::uint64_t address, void* data);
  bool add_free_callback(void* base, abi::hsa_amd_deallocation_callback_t callback, void* data);
  bool remove_free_callback(void* base, abi::hsa_amd_deallocation_callback_t callback);

  [[nodiscard]] std::uint64_t available(const Agent& agent) const;
  // Whether an access to [address, address + size) stays inside one allocation, or is in none at all.
  [[nodiscard]] bool in_bounds(const void* address, std::uint64_t size) const;

  // The set of GPUs among `agents`; nullopt when one of them is no agent.
  [[nodiscard]] std::optional<GpuSet> gpu_set(const abi::hsa_agent_t* agents, std::size_t count) const;
  [[nodiscard]] GpuSet all_gpus() const;

 private:
  // Part of a host range that is registered with one GPU, held by one or more locks or SVM ranges.
  struct Piece {
    std::uint64_t size;
    unsigned holders;
    bool sticky;      // SVM: stays until claimed or hidden
    bool registered;  // false where an allocation of the runtime's own gives access already
  };

  std::map<std::uint64_t, Block>::iterator locate(std::uint64_t address);
  void publish(const Block& block, GpuSet gpus);
  void withdraw(const Block& block, GpuSet gpus);
  void hold_pieces(std::uint64_t base, std::uint64_t size, GpuSet gpus, const char* kind, bool sticky);
  void drop_pieces(std::uint64_t base, std::uint64_t size, GpuSet gpus, bool sticky);

  Runtime* runtime_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Block> blocks_;
  struct Lock {
    std::uint64_t size;
    GpuSet gpus;
  };
  std::multimap<std::uint64_t, Lock> locks_;   // by host address: the same memory may be locked many times
  std::map<std::uint64_t, Piece> pieces_[32];  // per GPU
  std::map<const Agent*, std::uint64_t> used_;
};

}  // namespace kerncap::sim::rt
