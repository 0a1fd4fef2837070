// Virtual memory: address ranges that are reserved first, and memory that is mapped into them later.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "abi/hsa.h"
#include "sim/hsa/agent.h"

namespace kerncap::sim::rt {

class Runtime;

class VirtualMemory {
 public:
  explicit VirtualMemory(Runtime* runtime) : runtime_(runtime) {}

  // As ROCr: a wanted `address` that is taken gives another range, and no error.
  abi::hsa_status_t reserve(void** out, std::uint64_t size, std::uint64_t address, std::uint64_t alignment);
  abi::hsa_status_t free(void* address, std::uint64_t size);
  abi::hsa_status_t create(Pool* pool, std::uint64_t size, abi::hsa_amd_memory_type_t type,
                           std::uint64_t* handle);
  abi::hsa_status_t release(std::uint64_t handle);
  abi::hsa_status_t map(void* address, std::uint64_t size, std::uint64_t offset, std::uint64_t handle);
  abi::hsa_status_t unmap(void* address, std::uint64_t size);
  abi::hsa_status_t set_access(void* address, std::uint64_t size,
                               const abi::hsa_amd_memory_access_desc_t* list, std::size_t count);
  abi::hsa_status_t get_access(void* address, Agent* agent, abi::hsa_access_permission_t* out) const;
  abi::hsa_status_t export_handle(std::uint64_t handle, int* fd) const;
  abi::hsa_status_t import_handle(int fd, std::uint64_t* handle);
  abi::hsa_status_t retain(void* address, std::uint64_t* handle);
  abi::hsa_status_t properties(std::uint64_t handle, Pool** pool, abi::hsa_amd_memory_type_t* type) const;

  // (base, bytes) of the reservation that holds an address.
  [[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>> find_reservation(
      std::uint64_t address) const;

 private:
  // Memory behind a handle: a file in memory, so that it may be mapped in several places and exported.
  struct Storage {
    ~Storage();
    int fd = -1;
    std::uint64_t size = 0;
    Pool* pool = nullptr;
    abi::hsa_amd_memory_type_t type = abi::MEMORY_TYPE_NONE;
  };
  struct Handle {
    std::shared_ptr<Storage> storage;
    unsigned references = 1;
  };
  struct Mapping {
    std::uint64_t size = 0;
    std::shared_ptr<Storage> storage;
    std::uint64_t handle = 0;
    std::map<Agent*, abi::hsa_access_permission_t> access;
  };

  void set_gpu_access(std::uint64_t base, Mapping& mapping, Agent* agent,
                      abi::hsa_access_permission_t wanted);

  Runtime* runtime_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> reservations_;  // base -> bytes
  std::map<std::uint64_t, Handle> handles_;
  std::map<std::uint64_t, Mapping> mappings_;
  std::uint64_t last_handle_ = 0;
};

}  // namespace kerncap::sim::rt
