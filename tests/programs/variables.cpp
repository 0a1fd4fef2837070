// C10, R10: __constant__ and __device__ variables, read and changed by the kernel; --launches (3) of it.
#include "program.h"

int main(int argc, char** argv) {
  const int n = 1024;
  const long launches = option(argc, argv, "--launches", 3);
  hipModule_t module = load("variables");
  hipDeviceptr_t coefficients = nullptr, calls = nullptr, history = nullptr;
  std::size_t bytes = 0;
  CHECK(hipModuleGetGlobal(&coefficients, &bytes, module, "coefficients"));
  EXPECT(bytes == 16);
  CHECK(hipModuleGetGlobal(&calls, &bytes, module, "calls"));
  EXPECT(bytes == 4);
  CHECK(hipModuleGetGlobal(&history, &bytes, module, "history"));
  EXPECT(bytes == 1024);
  float values[4] = {1.0f, 2.0f, 0.5f, 0.25f};
  CHECK(hipMemcpyHtoD(coefficients, values, sizeof(values)));
  std::vector<float> input(n);
  for (int i = 0; i < n; ++i) input[i] = static_cast<float>(i % 16);
  const float* x = device_copy(input);
  float* y = device_copy(std::vector<float>(n));
  for (long l = 0; l < launches; ++l) launch(find(module, "polynomial"), n / 64, 64, x, y, n);
  const std::vector<float> result = host_copy(y, n);
  for (int i = 0; i < n; ++i) {
    const float v = input[i];
    EXPECT(result[i] == 1.0f + v * (2.0f + v * (0.5f + v * 0.25f)));
  }
  const int count = host_copy(static_cast<int*>(calls), 1)[0];
  EXPECT(count == launches);
  EXPECT(host_copy(static_cast<float*>(history), 256)[3] == static_cast<float>(launches) * result[3]);
  std::printf("variables: %d calls, y[3] = %.3f\n", count, result[3]);
}
