#include <stdlib.h>

#include <cstring>
#include <filesystem>

#include "check.h"

namespace test {

Scratch::Scratch() {
  char name[] = "/tmp/kerncap-unit-XXXXXX";
  path_ = ::mkdtemp(name) != nullptr ? name : "";
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace test

// Runs the case named, or all.
int main(int argc, char** argv) {
  int run = 0;
  for (const test::Case& c : test::cases()) {
    if (argc > 1 && std::strcmp(argv[1], c.name) != 0) continue;
    const int before = test::failures();
    c.body();
    ++run;
    std::printf("%s %s\n", test::failures() == before ? "ok  " : "FAIL", c.name);
  }
  std::printf("%d cases, %d failed checks\n", run, test::failures());
  return run == 0 || test::failures() != 0 ? 1 : 0;
}
