// C1: a kernel that updates its buffer in place, run N times (--launches, 2).
#include "program.h"

int main(int argc, char** argv) {
  const int n = 1000;
  const long launches = option(argc, argv, "--launches", 2);
  std::vector<float> values(n);
  for (int i = 0; i < n; ++i) values[i] = static_cast<float>(i);
  float* x = device_copy(values);
  hipFunction_t advance = find(load("in_place"), "advance");
  for (long l = 0; l < launches; ++l) launch(advance, (n + 255) / 256, 256, x, 1.5f, n);
  const std::vector<float> result = host_copy(x, n);
  for (long l = 0; l < launches; ++l) {
    for (float& v : values) v = v * 1.5f + 1.0f;
  }
  for (int i = 0; i < n; ++i) EXPECT(result[i] == values[i]);
  std::printf("in_place: %ld launches, last value %.3f\n", launches, result[n - 1]);
}
