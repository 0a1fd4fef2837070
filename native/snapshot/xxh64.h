// XXH64, seed 0 unless told otherwise: the hash of code objects and of memory blocks in a capture.
// Specification: xxHash fast digest algorithm, "XXH64 algorithm description".
#pragma once

#include <cstddef>
#include <cstdint>

namespace kerncap::snapshot {

std::uint64_t xxh64(const void* data, std::size_t bytes, std::uint64_t seed = 0);

// The digest of `bytes` bytes, a multiple of 32 and at least 32, from the four lanes that went over them.
std::uint64_t xxh64_of_lanes(const std::uint64_t (&lanes)[4], std::uint64_t bytes);

// The same over bytes that come in pieces.
class Xxh64 {
 public:
  explicit Xxh64(std::uint64_t seed = 0);
  void update(const void* data, std::size_t bytes);
  [[nodiscard]] std::uint64_t digest() const;

 private:
  std::uint64_t lanes_[4];
  std::uint64_t seed_;
  std::uint64_t total_ = 0;
  unsigned char pending_[32];
  unsigned pending_bytes_ = 0;
};

}  // namespace kerncap::snapshot
