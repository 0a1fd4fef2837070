// What MemoryImage needs of a device: to read its memory into buffers that the device's copies reach quickly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "interpose/common/allocation.h"

namespace kerncap::interpose {

// Freed by what made it.
using StagingPointer = std::unique_ptr<unsigned char, std::function<void(unsigned char*)>>;

class ImageMemory {
 public:
  virtual ~ImageMemory() = default;

  // How many threads read at a time.
  [[nodiscard]] virtual unsigned workers() const = 0;
  // A buffer for one worker, made in its thread. Throws std::bad_alloc.
  virtual StagingPointer staging(std::size_t bytes) = 0;
  // Reads [offset, offset + bytes) of an allocation; any thread. Empty on success, else why it cannot be
  // read.
  virtual std::string read(const Allocation& allocation, std::uint64_t offset, void* out,
                           std::size_t bytes) = 0;
};

}  // namespace kerncap::interpose
