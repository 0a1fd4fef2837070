// Reading memory of any kind without risking the process: its own through the kernel, which refuses bad
// addresses instead of faulting; a device's through the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "abi/hsa.h"
#include "interpose/hsa/allocations.h"

namespace kerncap::interpose {

// "0x7f12..."
std::string hex(std::uint64_t value);

// False when some of it is not mapped.
bool read_own_memory(std::uint64_t address, void* out, std::size_t bytes);

// Reads [offset, offset + bytes) of an allocation. Empty on success, else why it cannot be read.
std::string read_allocation(const Allocation& allocation, std::uint64_t offset, void* out, std::size_t bytes);

// Host memory that the device's copy engines reach directly where the runtime has such a pool.
class StagingBuffer {
 public:
  StagingBuffer(std::size_t bytes, abi::hsa_amd_memory_pool_t pool,
                abi::hsa_agent_t agent);  // throws std::bad_alloc
  ~StagingBuffer();
  StagingBuffer(const StagingBuffer&) = delete;
  StagingBuffer& operator=(const StagingBuffer&) = delete;

  [[nodiscard]] unsigned char* data() const { return data_; }

 private:
  unsigned char* data_ = nullptr;
  bool from_pool_ = false;
};

}  // namespace kerncap::interpose
