// C17: --launches (100000) tiny launches, every tenth of them `tock`.
#include "program.h"

int main(int argc, char** argv) {
  const long launches = option(argc, argv, "--launches", 100000);
  hipModule_t module = load("launches");
  hipFunction_t tick = find(module, "tick"), tock = find(module, "tock");
  unsigned* counter = device_copy(std::vector<unsigned>(1, 0u));
  for (long l = 0; l < launches; ++l) launch(l % 10 == 9 ? tock : tick, 1, 64, counter);
  const unsigned count = host_copy(counter, 1)[0];
  EXPECT(count == launches);
  std::printf("launches: %u\n", count);
}
