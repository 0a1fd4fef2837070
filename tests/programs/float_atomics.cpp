// R6: float atomics, whose order is not fixed.
#include <cmath>

#include "program.h"

int main() {
  const int n = 16384;
  std::vector<float> values(n);
  unsigned state = 1;
  double exact = 0.0;
  for (float& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) * std::ldexp(1.0f, static_cast<int>(state % 20) - 24);
    exact += v;
  }
  const float* x = device_copy(values);
  float* sums = device_copy(std::vector<float>(4, 0.0f));
  launch(find(load("float_atomics"), "sum_atomic"), n / 64, 64, x, sums, n);
  double total = 0.0;
  for (float v : host_copy(sums, 4)) total += v;
  EXPECT(std::fabs(total - exact) < 1e-3 * exact);
  std::printf("float_atomics: ok\n");
}
