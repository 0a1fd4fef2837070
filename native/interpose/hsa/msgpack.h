// Just enough of MessagePack to walk a code object's metadata in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace kerncap::interpose {

class MsgpackReader {
 public:
  MsgpackReader(const void* data, std::size_t bytes)
      : p_(static_cast<const unsigned char*>(data)), end_(p_ + bytes) {}

  [[nodiscard]] bool ok() const { return ok_; }

  // Number of pairs of the map that comes next; 0 and the value skipped when it is something else.
  std::uint32_t map() { return container(0x80, 0x8f, 0xde); }
  std::uint32_t array() { return container(0x90, 0x9f, 0xdc); }
  // The string that comes next; empty and the value skipped when it is something else.
  std::string_view string();
  // The unsigned integer that comes next; 0 and the value skipped when it is something else.
  std::uint64_t integer();
  void skip(int depth = 0);

 private:
  std::uint64_t big_endian(unsigned bytes) {
    std::uint64_t v = 0;
    if (!has(bytes)) return 0;
    for (unsigned i = 0; i < bytes; ++i) v = v << 8 | *p_++;
    return v;
  }
  bool has(std::uint64_t bytes) {
    if (static_cast<std::uint64_t>(end_ - p_) >= bytes) return ok_;
    ok_ = false;
    p_ = end_;
    return false;
  }
  std::uint32_t container(unsigned char low, unsigned char high, unsigned char wide16) {
    if (!has(1)) return 0;
    if (*p_ >= low && *p_ <= high) return *p_++ & 0x0fu;
    if (*p_ == wide16) return ++p_, static_cast<std::uint32_t>(big_endian(2));
    if (*p_ == wide16 + 1) return ++p_, static_cast<std::uint32_t>(big_endian(4));
    skip();
    return 0;
  }
  void advance(std::uint64_t bytes) {
    if (has(bytes)) p_ += bytes;
  }

  const unsigned char* p_;
  const unsigned char* end_;
  bool ok_ = true;
};

inline std::string_view MsgpackReader::string() {
  if (!has(1)) return {};
  const unsigned char tag = *p_;
  std::uint64_t length;
  if (tag >= 0xa0 && tag <= 0xbf) {
    ++p_, length = tag & 0x1fu;
  } else if (tag >= 0xd9 && tag <= 0xdb) {
    ++p_, length = big_endian(1u << (tag - 0xd9));
  } else {
    skip();
    return {};
  }
  if (!has(length)) return {};
  const std::string_view text(reinterpret_cast<const char*>(p_), length);
  p_ += length;
  return text;
}

inline std::uint64_t MsgpackReader::integer() {
  if (!has(1)) return 0;
  const unsigned char tag = *p_;
  if (tag < 0x80) return ++p_, tag;
  if (tag >= 0xcc && tag <= 0xcf) return ++p_, big_endian(1u << (tag - 0xcc));
  skip();
  return 0;
}

inline void MsgpackReader::skip(int depth) {
  if (depth > 64) ok_ = false;
  if (!has(1)) return;
  const unsigned char tag = *p_++;
  const auto values = [&](std::uint64_t count) {
    for (; count != 0 && ok_; --count) skip(depth + 1);
  };
  if (tag < 0x80 || tag >= 0xe0 || tag == 0xc0 || tag == 0xc2 || tag == 0xc3) return;
  if (tag <= 0x8f) return values(2u * (tag & 0x0fu));
  if (tag <= 0x9f) return values(tag & 0x0fu);
  if (tag <= 0xbf) return advance(tag & 0x1fu);
  switch (tag) {
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return advance(big_endian(1u << (tag - 0xc4)));
    case 0xc7:
    case 0xc8:
    case 0xc9:
      return advance(big_endian(1u << (tag - 0xc7)) + 1);
    case 0xca:
      return advance(4);
    case 0xcb:
      return advance(8);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      return advance(1u << (tag - 0xcc));
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      return advance(1u << (tag - 0xd0));
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return advance((1u << (tag - 0xd4)) + 1);
    case 0xd9:
    case 0xda:
    case 0xdb:
      return advance(big_endian(1u << (tag - 0xd9)));
    case 0xdc:
    case 0xdd:
      return values(big_endian(tag == 0xdc ? 2 : 4));
    case 0xde:
    case 0xdf:
      return values(2 * big_endian(tag == 0xde ? 2 : 4));
    default:
      ok_ = false;
  }
}

}  // namespace kerncap::interpose
