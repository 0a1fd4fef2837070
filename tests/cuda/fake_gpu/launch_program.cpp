// A program that launches much: `launches CUBIN CASE N [THREADS]`. Its first line says whether the driver's
// cuLaunchKernel begins with a jump, its last one how many records CUPTI has made.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "abi/cuda.h"

using namespace kerncap::abi;  // NOLINT

extern "C" {
std::size_t fake_records_made();
CUresult cuInit(unsigned);
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize();
CUresult cuModuleLoadData(CUmodule*, const void*);
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream, void**, void**);
CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             CUstream, void**, void**);
CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   unsigned, CUstream, void**);
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                        unsigned, unsigned, CUstream, void**);
CUresult cuLaunchGrid(CUfunction, int, int);
CUresult cuLaunchKernelEx(const CUlaunchConfig*, CUfunction, void**, void**);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig*, CUfunction, void**, void**);
}

namespace {

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::printf("%s gave %d\n", what, static_cast<int>(result));
  std::exit(1);
}

CUmodule load(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  image.push_back(0);
  CUmodule module = nullptr;
  check(cuModuleLoadData(&module, image.data()), "cuModuleLoadData");
  return module;
}

CUfunction get(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  check(cuModuleGetFunction(&function, module, name), "cuModuleGetFunction");
  return function;
}

CUresult launch(CUfunction f, unsigned blocks = 2) {
  return cuLaunchKernel(f, blocks, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr);
}

double now_us() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

// Launches of `each` by so many threads at once.
template <typename Each>
void by_threads(int threads, const Each& each) {
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) running.emplace_back(each);
  for (std::thread& thread : running) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argv[2];
  const int times = std::atoi(argv[3]), threads = argc > 4 ? std::atoi(argv[4]) : 1;
  CUcontext context = nullptr;
  check(cuInit(0), "cuInit");
  check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmodule module = load(argv[1]);
  CUfunction nothing = get(module, "nothing"), lingers = get(module, "lingers");
  std::printf("%s\n",
              *reinterpret_cast<const unsigned char*>(&cuLaunchKernel) == 0xe9 ? "hooked" : "not hooked");
  std::fflush(stdout);
  const auto wait = [] { check(cuCtxSynchronize(), "cuCtxSynchronize"); };
  if (what == "fast") {
    by_threads(threads, [&] {
      for (int i = 0; i < times; ++i) check(launch(nothing), "cuLaunchKernel");
    });
  } else if (what == "slow") {
    for (int i = 0; i < times; ++i) check(launch(nothing), "cuLaunchKernel"), ::usleep(500);
  } else if (what == "rare") {  // one kernel that takes long among many that do not
    for (int i = 0; i < times; ++i) {
      if (i % 100 == 99) check(launch(lingers), "cuLaunchKernel"), wait();
      check(launch(nothing), "cuLaunchKernel");
    }
  } else if (what == "late") {  // a kernel whose first launch comes when windows are closed
    for (int i = 0; i < times; ++i) check(launch(nothing), "cuLaunchKernel");
    CUfunction table = get(module, "nothing_else");
    for (int i = 0; i < times; ++i) {
      check(launch(nothing), "cuLaunchKernel");
      if (i % 100 == 0) check(launch(table), "cuLaunchKernel");
    }
  } else if (what == "old") {
    for (int i = 0; i < times; ++i) check(launch(nothing), "cuLaunchKernel");
    CUfunction old = get(module, "nothing_else");
    for (int i = 0; i < times; ++i) {
      check(launch(nothing), "cuLaunchKernel");
      check(cuLaunchGrid(i % 2 == 0 ? old : nothing, 3, 1), "cuLaunchGrid");
    }
    cuLaunchGrid(old, 0, 1);  // fails
  } else if (what == "failing") {
    int failed = 0;
    for (int i = 0; i < times; ++i) failed += launch(nothing, i % 3 == 0 ? 0 : 1) != CUDA_SUCCESS;
    std::printf("%d failed\n", failed);
  } else if (what == "names") {  // two kernels of one name, of which one takes long
    CUmodule other = load(argv[4]);
    CUfunction same = get(other, "nothing");
    for (int i = 0; i < times; ++i) {
      check(launch(nothing), "cuLaunchKernel");
      if (i % 50 == 0) check(launch(same, 3), "cuLaunchKernel");
    }
  } else if (what == "forms") {
    for (int i = 0; i < times; ++i) {
      const CUlaunchConfig config{2, 1, 1, 64, 1, 1, 0, nullptr, nullptr, 0};
      check(launch(nothing), "cuLaunchKernel");
      check(cuLaunchKernel_ptsz(nothing, 2, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr), "_ptsz");
      check(cuLaunchCooperativeKernel(nothing, 2, 1, 1, 64, 1, 1, 0, nullptr, nullptr), "cooperative");
      check(cuLaunchCooperativeKernel_ptsz(nothing, 2, 1, 1, 64, 1, 1, 0, nullptr, nullptr), "cooperative");
      check(cuLaunchKernelEx(&config, nothing, nullptr, nullptr), "cuLaunchKernelEx");
      check(cuLaunchKernelEx_ptsz(&config, nothing, nullptr, nullptr), "cuLaunchKernelEx_ptsz");
    }
  } else if (what == "pace") {  // the least time of a launch that the driver does nothing for, in ns
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
      const double began = now_us();
      for (int i = 0; i < times; ++i) launch(nothing, 7777);
      best = std::min(best, (now_us() - began) / times * 1e3);
    }
    std::printf("%.1f\n", best);
  }
  wait();
  std::printf("records %zu\n", fake_records_made());
  std::fflush(stdout);
  return 0;
}
