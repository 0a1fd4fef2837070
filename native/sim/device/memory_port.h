// A host thread's view of device memory: the allocation check before each access, made cheap by a few
// remembered ranges, and the record of what a dispatch wrote.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/device/gpu.h"

namespace kerncap::sim {

// Which bytes were stored to, exactly: a bitmap a page. One per host thread, merged at the end of a dispatch.
class WriteLog {
 public:
  WriteLog();
  ~WriteLog();
  WriteLog(WriteLog&&) noexcept;
  WriteLog& operator=(WriteLog&&) noexcept;
  void record(std::uint64_t address, std::uint64_t bytes);
  void merge_from(const WriteLog& other);
  [[nodiscard]] std::vector<WrittenRange> ranges() const;

 private:
  static constexpr unsigned kPageBits = 12;
  struct Page;
  struct Pages;
  Page* page(std::uint64_t number);
  std::unique_ptr<Pages> pages_;
  std::uint64_t last_number_ = ~0ull;
  Page* last_ = nullptr;
};

class MemoryPort {
 public:
  explicit MemoryPort(const AddressSpace& space) : space_(&space) {}

  // Whether [lo, hi) lies in one allocation, writable if `write`.
  bool covers(std::uint64_t lo, std::uint64_t hi, bool write) {
    if (generation_ == space_->generation()) [[likely]] {
      const Window& w = windows_[0];
      // Not `hi <= end`: an access at the end of the address space ends at a small address.
      if (lo >= w.base && hi - w.base <= w.size && (w.writable || !write)) [[likely]]
        return true;
    }
    return covers_slow(lo, hi, write);
  }
  // Throws isa::Trouble (memory_read, memory_write, write_to_read_only) unless [address, address+bytes) is
  // covered.
  void require(std::uint64_t address, unsigned bytes, bool write, int lane) {
    if (!covers(address, address + bytes, write)) [[unlikely]]
      refuse(address, bytes, write, lane);
  }

  WriteLog* log = nullptr;  // nullptr: writes are not recorded
  void wrote(std::uint64_t address, std::uint64_t bytes) {
    if (log != nullptr) [[unlikely]]
      log->record(address, bytes);
  }

 private:
  struct Window {
    std::uint64_t base = ~0ull, size = 0;
    bool writable = false;
  };
  static constexpr unsigned kWindows = 8;
  bool covers_slow(std::uint64_t lo, std::uint64_t hi, bool write);
  [[noreturn]] void refuse(std::uint64_t address, unsigned bytes, bool write, int lane) const;

  const AddressSpace* space_;
  std::uint64_t generation_ = 0;
  Window windows_[kWindows];  // most recently used first
};

}  // namespace kerncap::sim
