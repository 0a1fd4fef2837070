// R4: a kernel that writes --shift (0) elements beyond its buffer.
#include "program.h"

int main(int argc, char** argv) {
  const int n = 256;
  int* out = device_copy(std::vector<int>(n, -1));
  const long shift = option(argc, argv, "--shift", 0);
  launch(find(load("wild"), "scatter"), n / 64, 64, out, shift, n);
  EXPECT(host_copy(out, n)[n - 1] == (shift == 0 ? n - 1 : -1));
  std::printf("wild: ok\n");
}
