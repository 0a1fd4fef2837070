// A buffer that is passed as void*.
#include "program.h"

int main() {
  const int n = 256;
  float* out = device_copy(std::vector<float>(n, 0.0f));
  launch(find(load("untyped"), "fill"), n / 64, 64, static_cast<void*>(out), 0.5f, n);
  EXPECT(host_copy(out, n)[2] == 2.0f);
  std::printf("untyped\n");
}
