// The control block of a session, mapped.
#pragma once

#include <memory>
#include <string>

#include "live/layout.h"

namespace kerncap::live {

class ControlFile {
 public:
  // Maps <session>/control. Null when it is no control block of this version; `error` says why.
  static std::unique_ptr<ControlFile> open(const std::string& session, std::string* error);
  ~ControlFile();
  ControlFile(const ControlFile&) = delete;
  ControlFile& operator=(const ControlFile&) = delete;

  Control& block() { return *block_; }

 private:
  explicit ControlFile(Control* block) : block_(block) {}
  Control* block_;
};

// Copies `text` into a fixed field, NUL-terminated, cut at a UTF-8 boundary.
void set_text(char* field, std::size_t field_bytes, const std::string& text);

}  // namespace kerncap::live
