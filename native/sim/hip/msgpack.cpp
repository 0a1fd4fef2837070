#include "sim/hip/msgpack.h"

namespace kerncap::sim::hip {
namespace {

constexpr int kMaxDepth = 32;

// Formats are those of the MessagePack specification.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool value(MsgValue& out, int depth) {
    std::uint64_t tag = 0;
    if (depth > kMaxDepth || !number(1, tag)) return false;
    if (tag <= 0x7f) return integer(out, tag);
    if (tag <= 0x8f) return map(out, tag & 0xf, depth);
    if (tag <= 0x9f) return array(out, tag & 0xf, depth);
    if (tag <= 0xbf) return text(out, tag & 0x1f);
    if (tag >= 0xe0) return integer(out, static_cast<std::uint64_t>(static_cast<std::int8_t>(tag)));
    return tagged(out, tag, depth);
  }

 private:
  bool tagged(MsgValue& out, std::uint64_t tag, int depth) {
    std::uint64_t n = 0;
    switch (tag) {
      case 0xc0:
        return true;
      case 0xc2:
      case 0xc3:
        out.kind = MsgValue::Kind::boolean;
        out.integer = tag - 0xc2;
        return true;
      case 0xc4:
      case 0xc5:
      case 0xc6:  // binary
        return number(1U << (tag - 0xc4), n) && skip(n);
      case 0xc7:
      case 0xc8:
      case 0xc9:  // extension
        return number(1U << (tag - 0xc7), n) && skip(n + 1);
      case 0xca:
        return skip(4);
      case 0xcb:
        return skip(8);
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf:
        return number(1U << (tag - 0xcc), n) && integer(out, n);
      case 0xd0:
        return number(1, n) && integer(out, static_cast<std::uint64_t>(static_cast<std::int8_t>(n)));
      case 0xd1:
        return number(2, n) && integer(out, static_cast<std::uint64_t>(static_cast<std::int16_t>(n)));
      case 0xd2:
        return number(4, n) && integer(out, static_cast<std::uint64_t>(static_cast<std::int32_t>(n)));
      case 0xd3:
        return number(8, n) && integer(out, n);
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8:  // extensions of fixed size
        return skip((1U << (tag - 0xd4)) + 1);
      case 0xd9:
      case 0xda:
      case 0xdb:
        return number(1U << (tag - 0xd9), n) && text(out, n);
      case 0xdc:
      case 0xdd:
        return number(2U << (tag - 0xdc), n) && array(out, n, depth);
      case 0xde:
      case 0xdf:
        return number(2U << (tag - 0xde), n) && map(out, n, depth);
      default:
        return false;
    }
  }

  bool skip(std::uint64_t count) {
    if (count > bytes_.size() - at_) return false;
    at_ += count;
    return true;
  }

  bool number(unsigned count, std::uint64_t& out) {
    if (count > bytes_.size() - at_) return false;
    out = 0;
    for (unsigned i = 0; i < count; ++i) out = out << 8 | static_cast<std::uint8_t>(bytes_[at_++]);
    return true;
  }

  static bool integer(MsgValue& out, std::uint64_t n) {
    out.kind = MsgValue::Kind::integer;
    out.integer = n;
    return true;
  }

  bool text(MsgValue& out, std::uint64_t count) {
    const std::size_t from = at_;
    if (!skip(count)) return false;
    out.kind = MsgValue::Kind::text;
    out.text = bytes_.substr(from, count);
    return true;
  }

  bool array(MsgValue& out, std::uint64_t count, int depth) {
    out.kind = MsgValue::Kind::array;
    if (count > bytes_.size() - at_) return false;  // every value takes a byte or more
    out.array.resize(count);
    for (MsgValue& element : out.array) {
      if (!value(element, depth + 1)) return false;
    }
    return true;
  }

  bool map(MsgValue& out, std::uint64_t count, int depth) {
    out.kind = MsgValue::Kind::map;
    for (std::uint64_t i = 0; i < count; ++i) {
      MsgValue key;
      MsgValue entry;
      if (!value(key, depth + 1) || !value(entry, depth + 1)) return false;
      if (key.kind == MsgValue::Kind::text) out.map.emplace_back(std::move(key.text), std::move(entry));
    }
    return true;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

}  // namespace

const MsgValue* MsgValue::find(std::string_view key) const {
  for (const auto& [name, entry] : map) {
    if (name == key) return &entry;
  }
  return nullptr;
}

std::uint64_t MsgValue::number(std::string_view key, std::uint64_t otherwise) const {
  const MsgValue* entry = find(key);
  return entry != nullptr && entry->kind == Kind::integer ? entry->integer : otherwise;
}

std::string_view MsgValue::string(std::string_view key) const {
  const MsgValue* entry = find(key);
  return entry != nullptr && entry->kind == Kind::text ? std::string_view(entry->text) : std::string_view{};
}

std::optional<MsgValue> parse_msgpack(std::string_view bytes) {
  MsgValue value;
  if (!Reader(bytes).value(value, 0)) return std::nullopt;
  return value;
}

}  // namespace kerncap::sim::hip
