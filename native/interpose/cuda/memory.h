// All memory that the program got from the driver, by address, and reading it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "abi/cuda.h"
#include "interpose/common/allocation.h"
#include "interpose/common/image_memory.h"

namespace kerncap::interpose::cuda {

// Of the shared Allocation, `owner` is 1 + the device's ordinal here.
class Memory {
 public:
  void allocated(std::uint64_t address, std::uint64_t bytes, snapshot::RegionKind kind, std::uint32_t device,
                 std::string refusal = {});
  void freed(std::uint64_t address);
  void unmapped(std::uint64_t address, std::uint64_t bytes);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Everything now, in order of address; no two overlap.
  std::vector<Allocation> all() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Allocation> by_address_;
  std::atomic<std::uint64_t> bytes_{0};
};

// Device memory by copies into pinned host memory, each worker on a stream of its own.
class CudaImageMemory : public ImageMemory {
 public:
  explicit CudaImageMemory(abi::CUcontext context) : context_(context) {}
  [[nodiscard]] unsigned workers() const override;
  StagingPointer staging(std::size_t bytes) override;
  std::string read(const Allocation& allocation, std::uint64_t offset, void* out, std::size_t bytes) override;

 private:
  abi::CUcontext context_;
};

}  // namespace kerncap::interpose::cuda
