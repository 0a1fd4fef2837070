// Cases that register themselves, and checks that say what was not so.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace test {

struct Case {
  const char* name;
  std::function<void()> body;
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

inline int& failures() {
  static int count = 0;
  return count;
}

struct Register {
  Register(const char* name, std::function<void()> body) { cases().push_back({name, std::move(body)}); }
};

inline void fail(const char* file, int line, const std::string& what) {
  std::printf("%s:%d: %s\n", file, line, what.c_str());
  ++failures();
}

// A private directory that is removed at the end.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace test

#define TEST(name)                                          \
  static void name();                                       \
  static const test::Register register_##name(#name, name); \
  static void name()

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) test::fail(__FILE__, __LINE__, "not true: " #condition); \
  } while (false)

#define EXPECT_EQ(a, b)                                                                      \
  do {                                                                                       \
    const auto got_ = (a);                                                                   \
    const auto wanted_ = (b);                                                                \
    if (!(got_ == wanted_))                                                                  \
      test::fail(__FILE__, __LINE__, std::string(#a " is not " #b ": ") + test::show(got_)); \
  } while (false)

// The exception's text holds `part`.
#define EXPECT_THROWS(expression, type, part)                                                             \
  do {                                                                                                    \
    try {                                                                                                 \
      expression;                                                                                         \
      test::fail(__FILE__, __LINE__, "did not throw: " #expression);                                      \
    } catch (const type& error) {                                                                         \
      if (std::string(error.what()).find(part) == std::string::npos)                                      \
        test::fail(__FILE__, __LINE__, std::string("threw \"") + error.what() + "\", without " + (part)); \
    }                                                                                                     \
  } while (false)

namespace test {

inline std::string show(const std::string& s) { return '"' + s + '"'; }
inline std::string show(std::string_view s) { return show(std::string(s)); }
template <typename T>
std::string show(const T& value) {
  if constexpr (requires { std::to_string(value); }) {
    return std::to_string(value);
  } else {
    return "(no text)";
  }
}

}  // namespace test
