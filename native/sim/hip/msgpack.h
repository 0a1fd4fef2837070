// A reader for MessagePack documents, as AMDGPU code objects carry their metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kerncap::sim::hip {

// A decoded value. Binary, extension and floating-point values are read over and come out as nil: metadata
// has none.
struct MsgValue {
  enum class Kind { nil, boolean, integer, text, array, map };
  Kind kind = Kind::nil;
  std::uint64_t integer = 0;  // booleans and integers; negative ones in two's complement
  std::string text;
  std::vector<MsgValue> array;
  std::vector<std::pair<std::string, MsgValue>> map;  // entries whose key is text

  [[nodiscard]] const MsgValue* find(std::string_view key) const;  // null unless a map with that key
  [[nodiscard]] std::uint64_t number(std::string_view key, std::uint64_t otherwise) const;
  [[nodiscard]] std::string_view string(std::string_view key) const;
};

// nullopt if `bytes` is not one whole, valid value (bytes after it are ignored).
std::optional<MsgValue> parse_msgpack(std::string_view bytes);

}  // namespace kerncap::sim::hip
