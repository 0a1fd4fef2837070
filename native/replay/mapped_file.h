// A memory file of the capture, mapped to be read: at addresses in a row, also where it is several files or
// has blocks that repeat others (snapshot/layout.h): those are mapped from where their bytes lie. Its holes
// cost nothing: neither memory nor a read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/range_set.h"
#include "snapshot/layout.h"

namespace kerncap::replay {

class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Maps its first `bytes`. Throws snapshot::IoError.
  void open(const std::string& path, std::uint64_t bytes, snapshot::Layout layout = {});

  [[nodiscard]] const unsigned char* data() const { return data_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] const std::string& path() const { return path_; }

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
  struct Part {
    Range range;
    std::uint64_t from;  // where its bytes lie: range.base, or that of a block that has them too
  };
  // Of file `number`, in its own offsets and whole blocks of `block`.
  [[nodiscard]] std::vector<Range> extents_of(std::uint32_t number, std::uint64_t block) const;
  // Offsets that are not in a hole, in order, each within one stripe.
  [[nodiscard]] std::vector<Range> find_extents() const;
  void find_parts();
  // The first part that ends behind `offset`.
  [[nodiscard]] std::vector<Part>::const_iterator part_at(std::uint64_t offset) const;
  // Maps the bytes that lie at [from, from + bytes), which is within one stripe, at `at`.
  void map_part(std::uint64_t from, std::uint64_t bytes, void* at, int protection, int flags) const;

  std::string path_;
  snapshot::Layout layout_;
  std::vector<int> fds_;
  const unsigned char* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::vector<Part> parts_;  // what is no hole, in order, each from within one stripe
};

// A mapped file that can no longer be read (a broken disk, a file cut short meanwhile) is a SIGBUS wherever
// it is read. From now on that writes a line to `fd`, "error damaged 0 <file and offset>" (protocol.h), and
// ends the process with status 6.
void report_unreadable_files(int fd);

}  // namespace kerncap::replay
