// The captured memory, back at its own addresses: mapping, filling, and reading and writing it from the host.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "replay/backend.h"
#include "replay/mapped_file.h"
#include "replay/range_set.h"
#include "replay/reserve.h"
#include "snapshot/capture_reader.h"

namespace kerncap::replay {

// What a captured range has to do with where its bytes are now. For all memory but the module's own variables
// the two are the same.
struct Piece {
  std::uint64_t captured = 0;
  std::uint64_t live = 0;
  std::uint64_t bytes = 0;
  const unsigned char* before = nullptr;  // its bytes as captured
  std::uint32_t region = 0;               // RegionRecord::id
  std::uint64_t region_offset = 0;

  [[nodiscard]] std::uint64_t end() const { return captured + bytes; }
};

// A 64-bit word of the captured memory that points into the captured code object.
struct CodePointer {
  std::uint64_t at = 0;
  std::uint64_t live = 0;  // where it is in the device's memory; 0: it is a kernel argument
  std::uint64_t value = 0;
};

class ReplayMemory {
 public:
  ReplayMemory(const std::string& directory, const snapshot::CaptureReader& capture);
  ~ReplayMemory();
  ReplayMemory(const ReplayMemory&) = delete;
  ReplayMemory& operator=(const ReplayMemory&) = delete;

  // What must be held before the runtime is loaded.
  [[nodiscard]] std::vector<Placeholder> placeholders() const;

  // Maps every saved region at its address. `direct`: the host may touch the device's memory (the simulator).
  // Throws ReplayError (device, collision), snapshot::IoError.
  void place(Runtime& runtime, const Agent& agent, Reservation& reservation, bool direct);

  // Verifies memory.pre and memory.post against their checksums and fills the regions.
  // Throws snapshot::DamagedCapture.
  void fill();

  // Regions that live at their captured address: by address. Segments of the dispatched code object are not
  // in it.
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  // Bytes of mapped pages that belong to no region; they hold kCanary.
  [[nodiscard]] const std::vector<Range>& slack() const { return slack_; }
  static constexpr unsigned char kCanary = 0xC5;

  [[nodiscard]] const unsigned char* before(const snapshot::RegionRecord& region) const {
    return pre_.data() + region.pre_offset;
  }
  [[nodiscard]] const unsigned char* after_bytes(const snapshot::ChangeRecord& change) const {
    return post_.data() + change.post_offset;
  }

  // Whether the host may touch the device's memory.
  [[nodiscard]] bool touchable() const { return touchable_; }
  // Memory at a live address, through the host. Any thread.
  void read(std::uint64_t live, void* out, std::uint64_t bytes) const;
  void write(std::uint64_t live, const void* data, std::uint64_t bytes) const;
  void fill_with(std::uint64_t live, unsigned char value, std::uint64_t bytes) const;
  // Where the device can hash its memory: how far it is from `before`, bytes as captured, to the end of its
  // block of memory.pre (0: it is in none); and which whole blocks of it are on the device as they were
  // captured.
  struct Block {
    std::uint64_t live = 0;
    const unsigned char* before = nullptr;
  };
  [[nodiscard]] std::uint64_t to_block_end(const unsigned char* before) const;
  [[nodiscard]] std::vector<bool> as_captured(const std::vector<Block>& blocks) const;
  // A pointer through which the host may touch live memory; null where it may not.
  [[nodiscard]] unsigned char* direct(std::uint64_t live) const {
    return touchable_ ? reinterpret_cast<unsigned char*>(live) : nullptr;
  }

  // Found while filling: how many words point into the dispatched code object, and up to 65536 of them, by
  // address.
  [[nodiscard]] std::uint64_t code_pointer_count() const { return code_pointer_count_; }
  [[nodiscard]] const std::vector<CodePointer>& code_pointers() const { return code_pointers_; }
  // Where the captured code object was.
  [[nodiscard]] const Range& code() const { return code_; }
  // Bytes that have another value after the application's run.
  [[nodiscard]] std::uint64_t changed_bytes() const { return changed_bytes_; }
  // Device memory that had to be placed in host memory (no virtual memory API): timings are not the device's.
  [[nodiscard]] std::uint64_t displaced_bytes() const { return displaced_bytes_; }
  [[nodiscard]] const snapshot::RegionRecord* region_at(std::uint64_t address) const;
  // "0x10 bytes past the end of region 3 (device, 4096 bytes at 0x7f..)" for messages about an address.
  [[nodiscard]] std::string describe(std::uint64_t address) const;

 private:
  struct Span {
    Range range;  // whole pages
    snapshot::RegionKind kind;
    std::vector<std::size_t> regions;  // indices into the capture's
    bool is_vmem = false;
    bool from_file = false;  // its pages are the file's until they are written to
  };
  struct Part {  // of memory.pre
    std::uint64_t offset = 0;
    std::size_t piece = 0;  // index into pieces_
    bool in_place = false;  // mapped, not copied
  };
  // Each device's own (replay_memory_device.cpp): how regions (indices into the capture's, by address) share
  // pages; mapping a span; clearing what was mapped fresh; copying to the device, a block at a time.
  void arrange(const std::vector<std::size_t>& order);
  void map_vmem(Span& span);
  // `from_file`: the span is one region, in whole pages, and is mapped from memory.pre instead of being
  // copied.
  void map_host(Span& span, bool from_file);
  void clear(const Span& span) const;
  class Upload;
  // Whether the kernel writes so much of it that copying it all at once beats a page fault each.
  [[nodiscard]] bool rewritten(const Span& span) const;
  void fill_block(std::uint64_t block);
  void check_post();
  // Verifies a block against its checksum; `use(offset, bytes)` gets each piece of it that is no hole.
  template <typename Use>
  void check_block(snapshot::MemoryFile which, const MappedFile& file, std::uint64_t block,
                   const Use& use) const;
  [[nodiscard]] bool may_point_at_code(const unsigned char* words, std::uint64_t count) const;
  // Words that begin in `bytes`; `there` are as many as may be read. `live`: where they are in the device's
  // memory; 0: they are kernel arguments.
  void scan(const unsigned char* data, std::uint64_t address, std::uint64_t live, std::uint64_t bytes,
            std::uint64_t there);

  const snapshot::CaptureReader& capture_;
  std::array<std::string, 2> files_;
  MappedFile pre_, post_;
  std::vector<Span> spans_;
  std::vector<Piece> pieces_;
  std::vector<Part> parts_;  // by offset
  std::vector<Range> slack_;
  Runtime* runtime_ = nullptr;
  Agent agent_;
  bool touchable_ = false;
  Range code_;             // of the dispatched code object, where it was
  std::mutex scan_mutex_;  // guards the two that follow
  std::uint64_t code_pointer_count_ = 0;
  std::vector<CodePointer> code_pointers_;
  std::uint64_t displaced_bytes_ = 0;
  std::atomic<std::uint64_t> changed_bytes_{0};
};

const char* kind_name(snapshot::RegionKind kind);

}  // namespace kerncap::replay
