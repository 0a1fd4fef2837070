// C7: template instances that share a name, names that contain others, one symbol in two code objects.
#include "program.h"

int main() {
  const int n = 64;
  hipModule_t module = load("templates");
  float* x = device_copy(std::vector<float>(n, 1.0f));
  int* y = device_copy(std::vector<int>(n, 5));
  launch(find(module, "_Z5scaleIL4Kind0EfEvPT0_i"), 1, 64, x, n);
  launch(find(module, "_Z5scaleIL4Kind39EfEvPT0_i"), 1, 64, x, n);
  launch(find(module, "_Z5scaleIL4Kind39EiEvPT0_i"), 1, 64, y, n);
  launch(find(module, "scale_all"), 1, 64, x, n);
  launch(find(module, "twin"), 1, 64, x, n);
  launch(find(load("templates_twin"), "twin"), 1, 64, x, n);
  const float value = host_copy(x, n)[n - 1];
  EXPECT(value == 117.0f);
  EXPECT(host_copy(y, n)[0] == 10);
  std::printf("templates: %.1f\n", value);
}
