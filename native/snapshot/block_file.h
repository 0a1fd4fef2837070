// A file of memory bytes (memory.pre, memory.post): written in blocks that may come in any order and from
// several threads, with a checksum for each block; zeros become holes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "snapshot/records.h"

namespace kerncap::snapshot {

bool all_zero(const void* data, std::size_t bytes);

class BlockFile {
 public:
  explicit BlockFile(std::string path);  // created, mode 0600; throws IoError
  ~BlockFile();
  BlockFile(const BlockFile&) = delete;
  BlockFile& operator=(const BlockFile&) = delete;

  // Block `index` covers [index, index + 1) * kChecksumBlock of the file; only the last one may be shorter.
  // `hash` is xxh64(data, bytes). Thread safe. Throws IoError.
  void write_block(std::uint64_t index, const void* data, std::size_t bytes, std::uint64_t hash);

  // Sequential use: appends, hashing as blocks fill. Not to be mixed with write_block.
  void append(const void* data, std::size_t bytes);
  [[nodiscard]] std::uint64_t size() const { return size_; }

  // What write_block wrote; zeros beyond it. Thread safe. Throws IoError.
  void read_back(std::uint64_t offset, void* out, std::size_t bytes) const;

  // Writes what append holds back, sets the length and flushes to the disk. Throws IoError.
  void finish();

  [[nodiscard]] const std::vector<std::uint64_t>& checksums() const { return checksums_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  class Window;  // a part of the file that is mapped
  struct Filling {
    std::shared_ptr<Window> window;
    std::uint64_t blocks = 0;  // written so far
  };
  void flush_pending();
  std::shared_ptr<Window> window_of(std::uint64_t index);
  void block_done(std::uint64_t index);
  void write_run(Window* window, const unsigned char* data, std::size_t bytes, std::uint64_t offset);

  std::string path_;
  int fd_ = -1;
  std::mutex mutex_;          // guards checksums_, size_, windows_ and length_ in write_block
  std::atomic<bool> mapped_;  // whether blocks are copied into mappings of the file
  std::map<std::uint64_t, Filling> windows_;
  std::uint64_t length_ = 0;  // of the file, as far as mappings need it
  std::vector<std::uint64_t> checksums_;
  std::uint64_t size_ = 0;
  std::vector<unsigned char> pending_;  // append: the block that is not full yet
};

}  // namespace kerncap::snapshot
