#include "interpose/cuda/hooked_launches.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "interpose/cuda/driver.h"
#include "interpose/cuda/graph_launch.h"
#include "interpose/cuda/hook.h"
#include "interpose/cuda/process.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

enum Form : unsigned {
  kKernel,
  kKernelPerThread,
  kKernelEx,
  kKernelExPerThread,
  kCooperative,
  kCooperativePerThread,
  kGraph,
  kGraphPerThread,
  kForms
};

std::array<void*, kForms> originals{};
bool hooked = false;
thread_local constinit HookedLaunch this_launch;

// A launch, counted, between kerncap's beginning and its end. `call` makes it.
template <typename Call>
CUresult counted(CUfunction function, const LaunchShape& shape, CUstream stream, bool per_thread,
                 const Call& call) {
  Process* const p = process();
  HookedLaunch& launch = this_launch;
  if (p == nullptr || launch.inside || OwnCalls::active()) return call();
  launch.inside = true;
  launch.kernel = p->is_recorded(stream, per_thread) ? nullptr : p->kernels.find(function);
  if (launch.kernel == nullptr) {
    const CUresult result = call();
    launch.inside = false;
    return result;
  }
  Kernel& kernel = *launch.kernel;
  launch.nth = p->count(kernel, shape);
  const Sampling::Timed timed = p->sampling.begins(kernel, launch.nth);
  const CUresult result = call();
  launch.inside = false;
  if (timed != Sampling::Timed::as_it_is) p->sampling.ends(timed);
  if (result != CUDA_SUCCESS) p->withdraw(kernel);
  return result;
}

template <Form form>
CUresult launch_kernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra) {
  const auto original = reinterpret_cast<decltype(&launch_kernel<form>)>(originals[form]);
  return counted(f, {{gx, gy, gz}, {bx, by, bz}, shared}, stream, form == kKernelPerThread,
                 [&] { return original(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra); });
}

template <Form form>
CUresult launch_cooperative(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                            unsigned bz, unsigned shared, CUstream stream, void** parameters) {
  const auto original = reinterpret_cast<decltype(&launch_cooperative<form>)>(originals[form]);
  return counted(f, {{gx, gy, gz}, {bx, by, bz}, shared}, stream, form == kCooperativePerThread,
                 [&] { return original(f, gx, gy, gz, bx, by, bz, shared, stream, parameters); });
}

template <Form form>
CUresult launch_ex(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) {
  const auto original = reinterpret_cast<decltype(&launch_ex<form>)>(originals[form]);
  const auto call = [&] { return original(config, f, parameters, extra); };
  if (config == nullptr) return call();
  return counted(f, shape_of(*config), config->hStream, form == kKernelExPerThread, call);
}

template <Form form>
CUresult launch_graph(CUgraphExec graph, CUstream stream) {
  const auto original = reinterpret_cast<decltype(&launch_graph<form>)>(originals[form]);
  Process* const p = process();
  if (p == nullptr || OwnCalls::active()) return original(graph, stream);
  CUresult result = CUDA_SUCCESS;
  if (launch_graph_instead(graph, stream, form == kGraphPerThread, &result)) return result;
  CountedGraphLaunch launch(*p, graph, stream, form == kGraphPerThread);
  result = original(graph, stream);
  launch.end(result);
  return result;
}

struct Launcher {
  const char* name;    // without _ptsz
  const char* symbol;  // that is exported
  int since;           // the version of CUDA that has it, as cuGetProcAddress takes it
  bool per_thread;
  void* replacement;
};

const Launcher kLaunchers[kForms] = {
    {"cuLaunchKernel", "cuLaunchKernel", 4000, false, reinterpret_cast<void*>(&launch_kernel<kKernel>)},
    {"cuLaunchKernel", "cuLaunchKernel_ptsz", 7000, true,
     reinterpret_cast<void*>(&launch_kernel<kKernelPerThread>)},
    {"cuLaunchKernelEx", "cuLaunchKernelEx", 11060, false, reinterpret_cast<void*>(&launch_ex<kKernelEx>)},
    {"cuLaunchKernelEx", "cuLaunchKernelEx_ptsz", 11060, true,
     reinterpret_cast<void*>(&launch_ex<kKernelExPerThread>)},
    {"cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel", 9000, false,
     reinterpret_cast<void*>(&launch_cooperative<kCooperative>)},
    {"cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz", 9000, true,
     reinterpret_cast<void*>(&launch_cooperative<kCooperativePerThread>)},
    {"cuGraphLaunch", "cuGraphLaunch", 10000, false, reinterpret_cast<void*>(&launch_graph<kGraph>)},
    {"cuGraphLaunch", "cuGraphLaunch_ptsz", 10000, true,
     reinterpret_cast<void*>(&launch_graph<kGraphPerThread>)},
};

// Whether the function that cuGetProcAddress gives is the exported one: it could be one more.
bool is_the_only_one(void* library, const Launcher& launcher, const void* function) {
  using Get =
      CUresult (*)(const char* symbol, void** function, int version, std::uint64_t flags, int* status);
  const auto get = reinterpret_cast<Get>(::dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) return true;
  constexpr std::uint64_t kLegacyStream = 1, kPerThreadStream = 2;
  int newest = 0;
  driver().cuDriverGetVersion(&newest);
  for (const int version : {launcher.since, newest}) {
    void* found = nullptr;
    const CUresult result =
        get(launcher.name, &found, version, launcher.per_thread ? kPerThreadStream : kLegacyStream, nullptr);
    if (result == CUDA_SUCCESS && found != nullptr && found != function) return false;
  }
  return true;
}

}  // namespace

bool hook_launches() {
  if (!follows_graphs()) return false;  // an old driver, which does not tell a function's name
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return false;
  std::vector<Hook> hooks;
  for (unsigned form = 0; form < kForms; ++form) {
    const Launcher& launcher = kLaunchers[form];
    void* const function = ::dlsym(library, launcher.symbol);
    if (function == nullptr) return false;
    const bool again =
        std::any_of(hooks.begin(), hooks.end(), [&](const Hook& hook) { return hook.function == function; });
    if (again || !is_the_only_one(library, launcher, function)) return false;
    hooks.push_back({function, launcher.replacement, &originals[form]});
  }
  std::string why;
  hooked = install(hooks, &why);
  return hooked;
}

bool launches_are_hooked() { return hooked; }

const HookedLaunch& hooked_launch() { return this_launch; }

}  // namespace kerncap::interpose::cuda
