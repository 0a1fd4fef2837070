#include "interpose/common/names.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

namespace kerncap::interpose {
namespace {

// As in app/kerncap/core/code/demangle.py.
constexpr std::size_t kLongestSymbol = 20'000;
constexpr double kLongestName = 1 << 26;

// Walks back from the closing bracket at `close` to its opening one, over any brackets between them.
// npos when they do not balance.
std::size_t opening(std::string_view s, std::size_t close) {
  std::string expected;
  for (std::size_t i = close + 1; i-- > 0;) {
    switch (s[i]) {
      case ')':
        expected.push_back('(');
        break;
      case ']':
        expected.push_back('[');
        break;
      case '}':
        expected.push_back('{');
        break;
      case '>':
        // "->" is no bracket, and inside parentheses > is an operator: (3>2).
        if (i > 0 && s[i - 1] == '-') break;
        if (!expected.empty() && expected.back() == '(') break;
        expected.push_back('<');
        break;
      case '<':
        if (!expected.empty() && expected.back() == '(') break;
        [[fallthrough]];
      case '(':
      case '[':
      case '{':
        if (expected.empty() || expected.back() != s[i]) return std::string_view::npos;
        expected.pop_back();
        if (expected.empty()) return i;
        break;
      default:
        break;
    }
  }
  return std::string_view::npos;
}

// The position after the last `separator` that is in no bracket; 0 when there is none.
std::size_t after_last(std::string_view s, std::string_view separator) {
  for (std::size_t i = s.size(); i-- > 0;) {
    const char c = s[i];
    if (c == ')' || c == ']' || c == '}' || (c == '>' && (i == 0 || s[i - 1] != '-'))) {
      const std::size_t open = opening(s, i);
      if (open == std::string_view::npos) return 0;
      i = open;
      continue;
    }
    if (i + separator.size() <= s.size() && s.substr(i, separator.size()) == separator)
      return i + separator.size();
  }
  return 0;
}

bool starts_with_any(std::string_view s, std::initializer_list<std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes) {
    if (s.starts_with(prefix)) return true;
  }
  return false;
}

// How long the C++ name of a symbol can be at most: app/kerncap/core/code/demangle.py says why.
double longest_name(const std::string& symbol) {
  std::map<std::string_view, int> counts;  // of what repeats an earlier part: S_, S0_, T_, ...
  int references = 0;
  int packs = 0;
  const std::string_view text = symbol;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "Dp") ++packs;
    if (text[i] != 'S' && text[i] != 'T') continue;
    std::size_t end = i + 1;
    while (end < text.size() &&
           ((text[end] >= '0' && text[end] <= '9') || (text[end] >= 'A' && text[end] <= 'Z')))
      ++end;
    if (end == text.size() || text[end] != '_') continue;
    ++counts[text.substr(i, end + 1 - i)];
    ++references;
    i = end;
  }
  // Products, as log2 would need a libm of glibc 2.29; where they overflow they are infinite, and too much.
  double by_part = 1;
  double by_number = 1;
  double length = 1;
  for (const auto& [part, count] : counts) by_part *= 1.0 + count;
  for (int i = 0; i < references; ++i) by_number *= 1.4422495703074083;  // the third root of 3
  for (int i = 0; i < std::max(1, packs); ++i) length *= static_cast<double>(text.size());
  return length * std::min(by_part, by_number);
}

}  // namespace

std::string demangle(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;
  // Each part that repeats an earlier one may double the name, and nothing stops the library. kerncap itself
  // gives such a symbol to a child with a limit; a program of somebody's is given no children, and is shown
  // the symbol as it is.
  if (symbol.size() > kLongestSymbol || longest_name(symbol) > kLongestName) return symbol;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && name != nullptr ? std::string(name.get()) : symbol;
}

std::string_view without_parameters(std::string_view name) {
  while (name.ends_with(']')) {  // " [clone .cold]"
    const std::size_t open = opening(name, name.size() - 1);
    if (open == std::string_view::npos || open == 0) return name;
    name = name.substr(0, open);
    while (name.ends_with(' ')) name.remove_suffix(1);
  }
  if (name.ends_with(')')) {
    const std::size_t open = opening(name, name.size() - 1);
    if (open != std::string_view::npos && open != 0) name = name.substr(0, open);
  }
  return name.substr(after_last(name, " "));  // the return type of a template instance
}

std::string_view base_name(std::string_view name) {
  if (name.ends_with('>')) {
    const std::size_t open = opening(name, name.size() - 1);
    if (open != std::string_view::npos && open != 0) name = name.substr(0, open);
  }
  return name.substr(after_last(name, "::"));
}

live::KernelKind kernel_kind(std::string_view symbol, bool metadata_has_language) {
  using live::KernelKind;
  if (symbol.starts_with("__amd_rocclr_")) return KernelKind::runtime;
  if (symbol.starts_with("Cijk_")) return KernelKind::tensile;
  // The categories that Inductor's code generation puts after "triton_".
  if (starts_with_any(symbol, {"triton_poi_", "triton_red_", "triton_per_", "triton_tem_", "triton_for_",
                               "triton_unk_", "triton_mm_", "triton_bmm_", "triton_split_scan_",
                               "triton_spl_", "triton_flex_", "triton_convolution"})) {
    return KernelKind::inductor;
  }
  return metadata_has_language ? KernelKind::hip : KernelKind::triton;
}

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string id_text(std::uint64_t id) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(id));
  return text;
}

Pattern::Pattern(std::string text, bool exact_only) : text_(std::move(text)), exact_only_(exact_only) {
  symbol_ = text_.ends_with(".kd") ? text_.substr(0, text_.size() - 3) : text_;
  if (text_.size() < 6 || text_.size() > 16) return;
  for (const char c : text_) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) {
      id_prefix_.clear();
      return;
    }
    id_prefix_.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
}

bool Pattern::is_id_of(std::uint64_t id) const {
  return !id_prefix_.empty() && id_text(id).starts_with(id_prefix_);
}

Match Pattern::match(std::string_view symbol, std::string_view demangled, std::uint64_t id) const {
  if (symbol == symbol_) return Match::exact;
  if (is_id_of(id)) return Match::exact;
  if (exact_only_ || text_.empty()) return Match::none;
  if (demangled == text_) return Match::exact;
  const std::string_view plain = without_parameters(demangled);
  if (plain == text_ || base_name(plain) == text_) return Match::exact;
  return demangled.find(text_) != std::string_view::npos ? Match::part : Match::none;
}

}  // namespace kerncap::interpose
