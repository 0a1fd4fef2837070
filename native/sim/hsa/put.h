// Writing an attribute's value where a caller asked for it: the type is the attribute's, the pointer is void.
#pragma once

#include <cstring>

namespace kerncap::sim::rt {

template <typename T>
void put(void* where, T value) {
  std::memcpy(where, &value, sizeof value);
}

// A fixed-size character array, zero-filled.
template <std::size_t kBytes>
void put_text(void* where, const char* text) {
  std::memset(where, 0, kBytes);
  std::memcpy(where, text, strnlen(text, kBytes - 1));
}

}  // namespace kerncap::sim::rt
