#include "replay/error.h"

#include <cinttypes>
#include <cstdio>

namespace kerncap::replay {

const char* error_class_name(ErrorClass kind) {
  switch (kind) {
    case ErrorClass::usage:
      return "usage";
    case ErrorClass::device:
      return "device";
    case ErrorClass::collision:
      return "collision";
    case ErrorClass::damaged:
      return "damaged";
    case ErrorClass::fault:
      return "fault";
    case ErrorClass::timeout:
      return "timeout";
    case ErrorClass::internal:
      break;
  }
  return "internal";
}

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
  return text;
}

}  // namespace kerncap::replay
