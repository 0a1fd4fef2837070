// Code that comes while the program runs: a shared library with kernels, and a code object from a file, loaded and
// unloaded more than once.
//   modules PLUGIN CODE_OBJECT
#include <dlfcn.h>

#include "check.h"

static __global__ void twice(int* values) { values[threadIdx.x] += values[threadIdx.x] + 1000; }

int main(int count, char** arguments) {
  EXPECT(count == 3);
  int* values = device_array(std::vector<int>(64, 5));
  twice<<<1, 64>>>(values);
  launched("twice");
  EXPECT(host_vector(values, 64) == std::vector<int>(64, 1010));

  void* plugin = dlopen(arguments[1], RTLD_NOW);
  if (plugin == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  EXPECT(plugin != nullptr);
  auto* run = reinterpret_cast<int (*)(int*, int)>(dlsym(plugin, "plugin_run"));
  EXPECT(run(values, 64) == 1);
  EXPECT(run(values, 64) == 2);
  launched("twice", 2);
  launched("from_plugin", 2);
  EXPECT(host_vector(values, 64) == std::vector<int>(64, (1010 * 2 + 1) * 2 + 1));

  float* floats = device_array(std::vector<float>(100, 3.0f));
  float expected = 3;
  for (int round = 1; round <= 3; ++round) {
    hipModule_t module;
    hipFunction_t scale;
    HIP(hipModuleLoad(&module, arguments[2]));
    HIP(hipModuleGetFunction(&scale, module, "scale"));
    hipDeviceptr_t factor = nullptr;
    std::size_t bytes = 0;
    HIP(hipModuleGetGlobal(&factor, &bytes, module, "factor"));
    EXPECT(bytes == sizeof(float));
    const auto value = static_cast<float>(round + 1);
    HIP(hipMemcpyHtoD(factor, const_cast<float*>(&value), bytes));
    int n = 100;
    void* parameters[] = {&floats, &n};
    HIP(hipModuleLaunchKernel(scale, 2, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
    launched("scale");
    HIP(hipDeviceSynchronize());
    HIP(hipModuleUnload(module));
    expected *= value;
  }
  EXPECT(host_vector(floats, 100) == std::vector<float>(100, expected));
  return finish();
}
