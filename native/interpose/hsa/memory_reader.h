// Reading memory of any kind without risking the process: its own through the kernel, which refuses bad
// addresses instead of faulting; a device's through the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "abi/hsa.h"
#include "interpose/common/image_memory.h"
#include "interpose/hsa/allocations.h"

namespace kerncap::interpose {

// False when some of it is not mapped.
bool read_own_memory(std::uint64_t address, void* out, std::size_t bytes);

// Reads [offset, offset + bytes) of an allocation. Empty on success, else why it cannot be read.
std::string read_allocation(const Allocation& allocation, std::uint64_t offset, void* out, std::size_t bytes);

// A device's memory through HSA: copied into host memory that its copy engines reach directly, where the
// runtime has such a pool.
class HsaImageMemory : public ImageMemory {
 public:
  HsaImageMemory(abi::hsa_amd_memory_pool_t staging_pool, abi::hsa_agent_t agent)
      : pool_(staging_pool), agent_(agent) {}
  [[nodiscard]] unsigned workers() const override;
  StagingPointer staging(std::size_t bytes) override;
  std::string read(const Allocation& allocation, std::uint64_t offset, void* out,
                   std::size_t bytes) override {
    return read_allocation(allocation, offset, out, bytes);
  }

 private:
  abi::hsa_amd_memory_pool_t pool_;
  abi::hsa_agent_t agent_;
};

}  // namespace kerncap::interpose
