// A file of memory bytes (memory.pre, memory.post): written in blocks that may come in any order and from
// several threads, with a checksum for each block; zeros become holes, and a block that repeats another one
// is not written where that is wanted. A large one in memory (tmpfs) is
// several files, dealt out in stripes: there a file takes one write at a time, by its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "snapshot/layout.h"
#include "snapshot/records.h"

namespace kerncap::snapshot {

bool all_zero(const void* data, std::size_t bytes);

class BlockFile {
 public:
  // Created, mode 0600; throws IoError. `striped`: over several files, where that pays in `path`'s
  // filesystem. Up to `most_repeats` blocks that repeat another are not written.
  explicit BlockFile(std::string path, bool striped = false, std::uint32_t most_repeats = 0);
  ~BlockFile();
  BlockFile(const BlockFile&) = delete;
  BlockFile& operator=(const BlockFile&) = delete;

  // Block `index` covers [index, index + 1) * kChecksumBlock; only the last one may be shorter.
  // `hash` is xxh64(data, bytes). Thread safe. Throws IoError.
  void write_block(std::uint64_t index, const void* data, std::size_t bytes, std::uint64_t hash);

  // Sequential use: appends, hashing as blocks fill. Not to be mixed with write_block.
  void append(const void* data, std::size_t bytes);
  [[nodiscard]] std::uint64_t size() const { return size_; }

  // What write_block wrote; zeros beyond it. Thread safe. Throws IoError.
  void read_back(std::uint64_t offset, void* out, std::size_t bytes) const;

  // Writes what append holds back, sets the lengths and flushes to the disk. Throws IoError.
  void finish();

  [[nodiscard]] const std::vector<std::uint64_t>& checksums() const { return checksums_; }
  // Blocks that were not written, and which have their bytes. Not while others write.
  [[nodiscard]] const Repeats& repeats() const { return layout_.repeats; }
  // How many files there are room for, and which of them a block goes to: writes to different ones go side by
  // side.
  [[nodiscard]] std::uint32_t files() const { return layout_.stripes.files; }
  [[nodiscard]] std::uint32_t file_of(std::uint64_t index) const {
    return layout_.stripes.place(index * kChecksumBlock).file;
  }
  // How many files the bytes written so far lie in.
  [[nodiscard]] std::uint32_t files_used() const { return layout_.stripes.used(size_); }

 private:
  void flush_pending();
  // The file's descriptor; made at its first use.
  int file(std::uint32_t number);
  void write_run(const unsigned char* data, std::size_t bytes, std::uint64_t offset);
  // Whether block `source`, which is written, has these kChecksumBlock bytes.
  [[nodiscard]] bool is_same(std::uint64_t source, const unsigned char* data) const;
  // Makes `index` a repeat of a block with these bytes, if there is one and room for a repeat.
  bool repeat(std::uint64_t index, const unsigned char* data, std::uint64_t hash);

  std::string path_;
  std::uint32_t most_repeats_;
  mutable std::mutex mutex_;  // guards all that follow but the stripes and pending_, in write_block
  Layout layout_;
  std::unordered_map<std::uint64_t, std::uint64_t> written_;  // whole blocks, by hash: the first of each
  std::vector<int> fds_;                                      // -1: not made
  std::vector<std::uint64_t> checksums_;
  std::uint64_t size_ = 0;
  std::vector<unsigned char> pending_;  // append: the block that is not full yet
};

}  // namespace kerncap::snapshot
