// C8: the same code object loaded --modules (300) times; the kernel of the last one is launched.
#include "program.h"

int main(int argc, char** argv) {
  const long modules = option(argc, argv, "--modules", 300);
  hipModule_t last = nullptr;
  for (long m = 0; m < modules; ++m) last = load("many_modules");
  int* x = device_copy(std::vector<int>(64, 1));
  launch(find(last, "count"), 1, 64, x);
  EXPECT(host_copy(x, 64)[63] == 2);
  std::printf("many_modules: %ld\n", modules);
}
