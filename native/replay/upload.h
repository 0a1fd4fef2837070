// Copies captured bytes to the device, one block of memory.pre at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/replay_memory.h"

namespace kerncap::replay {

// One thread's. Each device defines it beside the rest of its ReplayMemory.
class ReplayMemory::Upload {
 public:
  explicit Upload(const ReplayMemory& memory);
  ~Upload();
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // Bytes for a live address; at most a block of them before send().
  void put(std::uint64_t live, const unsigned char* data, std::uint64_t bytes);
  void send();

 private:
  const ReplayMemory& memory_;
#ifdef KERNCAP_REPLAY_CUDA
  struct Stage* stage_ = nullptr;
  std::uint64_t staged_ = 0;
  struct Copy {
    std::uint64_t live, offset, bytes;
  };
  std::vector<Copy> copies_;
#endif
};

}  // namespace kerncap::replay
