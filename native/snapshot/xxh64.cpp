#include "snapshot/xxh64.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kerncap::snapshot {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87ull;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Full;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9ull;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63ull;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5ull;

std::uint64_t load64(const unsigned char* p) {
  std::uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}

std::uint32_t load32(const unsigned char* p) {
  std::uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ round(0, lane)) * kPrime1 + kPrime4;
}

void start(std::uint64_t (&lanes)[4], std::uint64_t seed) {
  lanes[0] = seed + kPrime1 + kPrime2;
  lanes[1] = seed + kPrime2;
  lanes[2] = seed;
  lanes[3] = seed - kPrime1;
}

// Whole stripes of 32 bytes.
const unsigned char* stripes(std::uint64_t (&lanes)[4], const unsigned char* p, std::size_t count) {
  std::uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
  for (; count != 0; --count, p += 32) {
    a = round(a, load64(p));
    b = round(b, load64(p + 8));
    c = round(c, load64(p + 16));
    d = round(d, load64(p + 24));
  }
  lanes[0] = a, lanes[1] = b, lanes[2] = c, lanes[3] = d;
  return p;
}

std::uint64_t finish(const std::uint64_t (&lanes)[4], std::uint64_t seed, std::uint64_t total,
                     const unsigned char* tail, std::size_t tail_bytes) {
  std::uint64_t hash;
  if (total >= 32) {
    hash =
        std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (const std::uint64_t lane : lanes) hash = merge(hash, lane);
  } else {
    hash = seed + kPrime5;
  }
  hash += total;
  for (; tail_bytes >= 8; tail += 8, tail_bytes -= 8) {
    hash = std::rotl(hash ^ round(0, load64(tail)), 27) * kPrime1 + kPrime4;
  }
  if (tail_bytes >= 4) {
    hash = std::rotl(hash ^ (load32(tail) * kPrime1), 23) * kPrime2 + kPrime3;
    tail += 4, tail_bytes -= 4;
  }
  for (; tail_bytes != 0; ++tail, --tail_bytes) hash = std::rotl(hash ^ (*tail * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace

std::uint64_t xxh64(const void* data, std::size_t bytes, std::uint64_t seed) {
  std::uint64_t lanes[4];
  start(lanes, seed);
  const unsigned char* tail = stripes(lanes, static_cast<const unsigned char*>(data), bytes / 32);
  return finish(lanes, seed, bytes, tail, bytes % 32);
}

std::uint64_t xxh64_of_lanes(const std::uint64_t (&lanes)[4], std::uint64_t bytes) {
  return finish(lanes, 0, bytes, nullptr, 0);
}

Xxh64::Xxh64(std::uint64_t seed) : seed_(seed) { start(lanes_, seed); }

void Xxh64::update(const void* data, std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  total_ += bytes;
  if (pending_bytes_ != 0) {
    const std::size_t take = std::min<std::size_t>(32 - pending_bytes_, bytes);
    std::memcpy(pending_ + pending_bytes_, p, take);
    pending_bytes_ += static_cast<unsigned>(take);
    p += take, bytes -= take;
    if (pending_bytes_ < 32) return;
    stripes(lanes_, pending_, 1);
    pending_bytes_ = 0;
  }
  p = stripes(lanes_, p, bytes / 32);
  pending_bytes_ = static_cast<unsigned>(bytes % 32);
  if (pending_bytes_ != 0) std::memcpy(pending_, p, pending_bytes_);
}

std::uint64_t Xxh64::digest() const { return finish(lanes_, seed_, total_, pending_, pending_bytes_); }

}  // namespace kerncap::snapshot
