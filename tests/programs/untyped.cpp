// C2: a buffer that is passed as void*, and that a second launch leaves with the values it has.
#include "program.h"

int main() {
  const int n = 256;
  float* out = device_copy(std::vector<float>(n, 0.0f));
  hipFunction_t fill = find(load("untyped"), "fill");
  for (int l = 0; l < 2; ++l) launch(fill, n / 64, 64, static_cast<void*>(out), 0.5f, n);
  EXPECT(host_copy(out, n)[2] == 2.0f);
  std::printf("untyped\n");
}
