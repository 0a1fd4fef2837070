// C9: pointers in a struct that is passed by value.
#include "by_value.h"

#include "program.h"

int main() {
  const int n = 200;
  const float* in = device_copy(std::vector<float>(n, 2.0f));
  float* out = device_copy(std::vector<float>(n, 0.0f));
  launch(find(load("by_value"), "run_task"), 4, 64, Task{in, out, n});
  EXPECT(host_copy(out, n)[n - 1] == 6.0f);
  std::printf("by_value\n");
}
