// A kernel that is compiled while the program runs (hiprtc).
#include <hip/hiprtc.h>

#include "check.h"

static const char* const source = R"(
template <typename T>
__global__ void axpy(T a, const T* x, T* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
)";

#define RTC(call)                                                                        \
  do {                                                                                   \
    const hiprtcResult result = (call);                                                  \
    if (result != HIPRTC_SUCCESS) {                                                      \
      std::fprintf(stderr, "%d: %s: %s\n", __LINE__, #call, hiprtcGetErrorString(result)); \
      std::exit(2);                                                                      \
    }                                                                                    \
  } while (false)

int main() {
  hiprtcProgram program;
  RTC(hiprtcCreateProgram(&program, source, "axpy.hip", 0, nullptr, nullptr));
  RTC(hiprtcAddNameExpression(program, "axpy<float>"));
  hipDeviceProp_t properties;
  HIP(hipGetDeviceProperties(&properties, 0));
  const std::string arch = std::string("--offload-arch=") + properties.gcnArchName;
  const char* options[] = {arch.c_str(), "-O3"};
  RTC(hiprtcCompileProgram(program, 2, options));
  const char* name = nullptr;
  RTC(hiprtcGetLoweredName(program, "axpy<float>", &name));
  std::size_t size = 0;
  RTC(hiprtcGetCodeSize(program, &size));
  std::vector<char> code(size);
  RTC(hiprtcGetCode(program, code.data()));
  hipModule_t module;
  hipFunction_t function;
  HIP(hipModuleLoadData(&module, code.data()));
  HIP(hipModuleGetFunction(&function, module, name));
  int n = 300;
  float a = 2.5f;
  float* x = device_array(std::vector<float>(n, 4.0f));
  float* y = device_array(std::vector<float>(n, 1.0f));
  void* arguments[] = {&a, &x, &y, &n};
  HIP(hipModuleLaunchKernel(function, 5, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  launched("axpy");
  EXPECT(host_vector(y, n) == std::vector<float>(n, 11.0f));
  RTC(hiprtcDestroyProgram(&program));
  return finish();
}
