// The two ways in which a capture goes wrong on disk.
#pragma once

#include <stdexcept>
#include <string>

namespace kerncap::snapshot {

// A system call failed: a full disk, a missing directory, no permission. The text names the path and the
// reason.
class IoError : public std::runtime_error {
 public:
  IoError(const std::string& text, int error_number)
      : std::runtime_error(text), error_number_(error_number) {}
  [[nodiscard]] int error_number() const { return error_number_; }

 private:
  int error_number_;
};

// Whether a system call failed for want of memory, file descriptors or threads: a limit of the process or the
// machine, which says nothing of the file.
bool is_shortage(int error_number);

// What was read is no capture, or not all of it. The text names the file and the offset.
class DamagedCapture : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "cannot write PATH: No space left on device"
[[noreturn]] void throw_io(const std::string& what, const std::string& path, int error_number);

}  // namespace kerncap::snapshot
