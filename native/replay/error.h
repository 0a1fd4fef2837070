// Why the replayer could not do what it was asked; each class has its own way on in
// kerncap.core.replay.replayer.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace kerncap::replay {

enum class ErrorClass {
  usage,      // the request, or the variant it names
  device,     // no such device, runtime, memory
  collision,  // a captured address range is taken in this process
  damaged,    // the capture
  fault,      // the kernel faulted, or its queue failed; the process ends
  timeout,    // the kernel did not end in time; the process ends
  internal,
};

const char* error_class_name(ErrorClass kind);

class ReplayError : public std::runtime_error {
 public:
  ReplayError(ErrorClass kind, const std::string& text, std::uint64_t address = 0)
      : std::runtime_error(text), kind_(kind), address_(address) {}
  [[nodiscard]] ErrorClass kind() const { return kind_; }
  [[nodiscard]] std::uint64_t address() const { return address_; }  // of a fault; 0: not known

 private:
  ErrorClass kind_;
  std::uint64_t address_;
};

std::string hex(std::uint64_t value);  // "0x7f00"

}  // namespace kerncap::replay
