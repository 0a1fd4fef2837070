// Kernels' names: demangling, kinds, and whether what a user typed means a kernel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "live/layout.h"

namespace kerncap::interpose {

// The demangled form of an Itanium symbol; the symbol itself where it is not mangled.
std::string demangle(const std::string& symbol);

// "void ns::mul<int, (type)39>(float*, int)" -> "ns::mul<int, (type)39>"
std::string_view without_parameters(std::string_view demangled);

// "ns::mul<int, (type)39>" -> "mul"
std::string_view base_name(std::string_view without_parameters);

// By name, and for Triton by the metadata: clang's compilers write a `.language` for each kernel, Triton
// none.
live::KernelKind kernel_kind(std::string_view symbol, bool metadata_has_language);

std::string id_text(std::uint64_t id);  // 16 hex digits
std::string hex(std::uint64_t value);   // "0x7f12..."

enum class Match {
  none,
  part,   // a substring of the demangled name
  exact,  // id or a prefix of at least 6 digits, symbol, demangled name with or without parameters, base name
};

// What a user typed.
class Pattern {
 public:
  // With `exact_only`, only an id or a mangled name is meant.
  Pattern(std::string text, bool exact_only);

  // `symbol` without ".kd".
  [[nodiscard]] Match match(std::string_view symbol, std::string_view demangled, std::uint64_t id) const;
  // Whether it names a kernel by its id.
  [[nodiscard]] bool is_id_of(std::uint64_t id) const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string symbol_;     // text_ without a ".kd" at its end
  std::string id_prefix_;  // lower case; empty when text_ is no id
  bool exact_only_;
};

}  // namespace kerncap::interpose
