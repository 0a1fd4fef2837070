// The memory that a dispatch can reach: found by following pointers from the kernel arguments and the
// module's segments, saved before the dispatch, compared after it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "interpose/common/allocation.h"
#include "interpose/common/image_memory.h"
#include "live/layout.h"
#include "snapshot/capture_writer.h"

namespace kerncap::interpose {

// A capture that cannot be made: the text says why.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ImageRegion {
  Allocation source;
  std::uint32_t code_object = 0;  // LoadedCode::id of a code segment
  std::uint32_t id = 0;           // from 1, once it is part of the image
  std::uint64_t pre_offset = 0;
  bool reachable = false;
  bool written = false;
  std::string unsaved;  // why its bytes are not in memory.pre
};

struct ImageProgress {
  std::atomic<std::uint64_t>* done = nullptr;
  std::atomic<std::uint64_t>* total = nullptr;
  std::function<void()> check;  // throws to stop
};

class MemoryImage {
 public:
  // `regions` must not overlap; `memory` must outlive it.
  MemoryImage(std::vector<ImageRegion> regions, live::MemoryMode mode, ImageMemory& memory,
              ImageProgress progress);
  ~MemoryImage();

  // Roots: words of the kernel arguments (any 4-byte alignment), and the code object of the kernel.
  void add_roots(std::span<const unsigned char> kernargs, std::uint32_t code_object);

  // Throws Refused, IoError, or what progress.check throws.
  void save_before(snapshot::CaptureWriter& writer);
  void save_changes(snapshot::CaptureWriter& writer);

  // Regions that belong into the capture, in the order of their ids.
  std::vector<const ImageRegion*> image() const;
  [[nodiscard]] std::uint64_t reachable_bytes() const;

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace kerncap::interpose
