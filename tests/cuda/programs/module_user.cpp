// A program of the driver API alone: `module_user FILE.cubin N [extra]` loads a cubin (or PTX) and runs its kernel
// saxpy on 1000 floats N times.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#define DRIVER(call)                                                   \
  do {                                                                 \
    const CUresult e_ = (call);                                        \
    if (e_ != CUDA_SUCCESS) {                                          \
      std::printf("%s: driver error %d\n", #call, static_cast<int>(e_)); \
      std::exit(1);                                                    \
    }                                                                  \
  } while (0)

int main(int, char** argv) {
  std::ifstream file(argv[1], std::ios::binary);
  std::vector<char> image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  image.push_back(0);
  const int times = std::atoi(argv[2]);
  DRIVER(cuInit(0));
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CUdeviceptr x, y;
  DRIVER(cuDeviceGet(&device, 0));
  DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  DRIVER(cuCtxSetCurrent(context));
  DRIVER(cuModuleLoadData(&module, image.data()));
  DRIVER(cuModuleGetFunction(&function, module, "saxpy"));
  int n = 1000;
  float a = 2.0f;
  DRIVER(cuMemAlloc(&x, n * 4));
  DRIVER(cuMemAlloc(&y, n * 4));
  std::vector<float> values(n);
  for (int i = 0; i < n; ++i) values[i] = static_cast<float>(i);
  DRIVER(cuMemcpyHtoD(x, values.data(), n * 4));
  DRIVER(cuMemcpyHtoD(y, values.data(), n * 4));
  void* parameters[] = {&y, &x, &a, &n};
  for (int k = 0; k < times; ++k) DRIVER(cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
  DRIVER(cuMemcpyDtoH(values.data(), y, n * 4));
  double sum = 0;
  for (const float v : values) sum += v;
  std::printf("module_user %.1f\n", sum);
  return 0;
}
