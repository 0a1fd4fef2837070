// A memory file of the capture, mapped to be read. Its holes cost nothing: neither memory nor a read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/range_set.h"

namespace kerncap::replay {

class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Maps the first `bytes` of the file. Throws snapshot::IoError.
  void open(const std::string& path, std::uint64_t bytes);

  [[nodiscard]] const unsigned char* data() const { return data_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // Offsets that are not in a hole, in whole blocks of kHoleBlock (the last one shorter); in order.
  [[nodiscard]] const std::vector<Range>& extents() const { return extents_; }
  // Whether [offset, offset + bytes) is zeros by being a hole.
  [[nodiscard]] bool is_hole(std::uint64_t offset, std::uint64_t bytes) const;

  // Puts a private, writable copy of [offset, offset + bytes) at `address`, over what is mapped there: pages
  // that nobody writes to stay the file's. `offset` and `address` are whole pages. Holes are left as they
  // are. Throws snapshot::IoError.
  void map_private(std::uint64_t offset, std::uint64_t bytes, std::uint64_t address) const;

  // Asks for the bytes from `offset` on to be read ahead; a hint.
  void read_ahead(std::uint64_t offset, std::uint64_t bytes) const;

  static constexpr std::uint64_t kHoleBlock = 1u << 20;

 private:
  void find_extents();

  std::string path_;
  int fd_ = -1;
  const unsigned char* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::vector<Range> extents_;
};

// A mapped file that can no longer be read (a broken disk, a file cut short meanwhile) is a SIGBUS wherever
// it is read. From now on that writes a line to `fd`, "error damaged 0 <file and offset>" (protocol.h), and
// ends the process with status 6.
void report_unreadable_files(int fd);

}  // namespace kerncap::replay
