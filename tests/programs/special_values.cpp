// R7: a kernel whose output holds NaN, infinity, +0 and -0.
#include <cmath>

#include "program.h"

int main() {
  const int n = 500;
  std::vector<float> values(n);
  for (int i = 0; i < n; ++i) values[i] = static_cast<float>(i + 1);
  const float* x = device_copy(values);
  float* out = device_copy(std::vector<float>(n, 7.0f));
  launch(find(load("special_values"), "special"), (n + 63) / 64, 64, x, out, n);
  const std::vector<float> result = host_copy(out, n);
  EXPECT(result[0] == 0.0f && !std::signbit(result[0]));
  EXPECT(result[1] == 0.0f && std::signbit(result[1]));
  EXPECT(std::isnan(result[2]));
  EXPECT(std::isinf(result[3]));
  EXPECT(result[4] == 5.0f);
  std::printf("special_values: ok\n");
}
