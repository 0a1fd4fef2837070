// A program on the driver API: `program CUBIN CASE N`.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "abi/cuda.h"

using namespace kerncap::abi;  // NOLINT

extern "C" {
CUresult cuInit(unsigned);
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize();
CUresult cuModuleLoadData(CUmodule*, const void*);
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*);
CUresult cuModuleGetGlobal_v2(CUdeviceptr*, std::size_t*, CUmodule, const char*);
CUresult cuMemAlloc_v2(CUdeviceptr*, std::size_t);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemAddressReserve(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long);
CUresult cuMemCreate(CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*,
                     unsigned long long);
CUresult cuMemMap(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void*, std::size_t);
CUresult cuMemcpyDtoH_v2(void*, CUdeviceptr, std::size_t);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream, void**, void**);
}

namespace {

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::printf("%s gave %d\n", what, static_cast<int>(result));
  std::exit(1);
}

CUdeviceptr uploaded(std::size_t floats) {
  CUdeviceptr p = 0;
  check(cuMemAlloc_v2(&p, floats * 4), "cuMemAlloc");
  std::vector<float> values(floats);
  for (std::size_t i = 0; i < floats; ++i) values[i] = static_cast<float>(i * 37 % 1001);
  check(cuMemcpyHtoD_v2(p, values.data(), floats * 4), "cuMemcpyHtoD");
  return p;
}

double sum(CUdeviceptr p, std::size_t floats) {
  std::vector<float> values(floats);
  check(cuMemcpyDtoH_v2(values.data(), p, floats * 4), "cuMemcpyDtoH");
  double total = 0;
  for (const float v : values) total += v;
  return total;
}

}  // namespace

int main(int, char** argv) {
  std::ifstream file(argv[1], std::ios::binary);
  std::vector<char> image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  image.push_back(0);
  const int times = std::atoi(argv[3]);
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  check(cuInit(0), "cuInit");
  check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(cuModuleLoadData(&module, image.data()), "cuModuleLoadData");
  std::printf("start\n");
  if (std::strcmp(argv[2], "saxpy") == 0) {
    int n = 100000;
    float a = 1.5f;
    CUdeviceptr y = uploaded(100000), x = uploaded(1 << 20), unrelated = uploaded(5000), freed = uploaded(10);
    check(cuMemFree_v2(freed), "cuMemFree");
    check(cuModuleGetFunction(&function, module, "saxpy"), "cuModuleGetFunction");
    void* parameters[] = {&y, &x, &a, &n};
    for (int k = 0; k < times; ++k)
      check(cuLaunchKernel(function, 391, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr),
            "cuLaunchKernel");
    std::printf("%.3f %.3f\n", sum(y, 100000), sum(unrelated, 5000));
  } else if (std::strcmp(argv[2], "mappings") == 0) {
    // Two mappings in a row; the kernel has a pointer into the first, and goes through both.
    constexpr std::size_t kFirst = 2u << 20, kSecond = 4u << 20;
    int n = (kFirst + kSecond) / 4;
    float a = 0.5f;
    CUdeviceptr y = 0;
    CUmemGenericAllocationHandle handles[2];
    check(cuMemAddressReserve(&y, 64u << 20, 0, 0x500000000000 + (CUdeviceptr(::getpid()) << 26), 0),
          "reserve");
    check(cuMemCreate(&handles[0], kFirst, nullptr, 0), "cuMemCreate");
    check(cuMemCreate(&handles[1], kSecond, nullptr, 0), "cuMemCreate");
    check(cuMemMap(y, kFirst, 0, handles[0], 0), "cuMemMap");
    check(cuMemMap(y + kFirst, kSecond, 0, handles[1], 0), "cuMemMap");
    const std::vector<float> ones(static_cast<std::size_t>(n), 1.0f);
    check(cuMemcpyHtoD_v2(y, ones.data(), kFirst + kSecond), "cuMemcpyHtoD");
    check(cuModuleGetFunction(&function, module, "saxpy"), "cuModuleGetFunction");
    void* parameters[] = {&y, &y, &a, &n};
    for (int k = 0; k < times; ++k)
      check(cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
    std::printf("%.3f\n", sum(y, static_cast<std::size_t>(n)));
  } else {
    int n = 300;
    CUdeviceptr rows[4], table = 0, target = uploaded(300), variable = 0;
    std::size_t bytes = 0;
    for (CUdeviceptr& row : rows) row = uploaded(300);
    const float scales[4] = {2, 3, 4, 5};
    check(cuMemAlloc_v2(&table, sizeof rows), "cuMemAlloc");
    check(cuMemcpyHtoD_v2(table, rows, sizeof rows), "cuMemcpyHtoD");
    check(cuModuleGetGlobal_v2(&variable, &bytes, module, "target"), "cuModuleGetGlobal");
    check(cuMemcpyHtoD_v2(variable, &target, sizeof target), "cuMemcpyHtoD");
    check(cuModuleGetGlobal_v2(&variable, &bytes, module, "scale"), "cuModuleGetGlobal");
    check(cuMemcpyHtoD_v2(variable, scales, sizeof scales), "cuMemcpyHtoD");
    check(cuModuleGetFunction(&function, module, "of_table"), "cuModuleGetFunction");
    void* parameters[] = {&table, &n};
    for (int k = 0; k < times; ++k)
      check(cuLaunchKernel(function, 2, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
    int counter = 0;
    check(cuModuleGetGlobal_v2(&variable, &bytes, module, "counter"), "cuModuleGetGlobal");
    check(cuMemcpyDtoH_v2(&counter, variable, sizeof counter), "cuMemcpyDtoH");
    std::printf("%.3f %d\n", sum(rows[0], 300) + sum(rows[3], 300), counter);
  }
  std::fflush(stdout);
  return 0;
}
