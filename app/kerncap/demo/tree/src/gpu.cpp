#include "gpu.h"

#include <cstdio>
#include <cstdlib>

long Kernel::launches = 0;

void check_hip(hipError_t error, const char* what) {
  if (error == hipSuccess) return;
  std::fprintf(stderr, "decode: %s failed: %s\n", what, hipGetErrorString(error));
  std::exit(2);
}

Module::Module(const std::string& path) {
  const hipError_t error = hipModuleLoad(&module_, path.c_str());
  if (error == hipSuccess) return;
  std::fprintf(stderr, "decode: %s cannot be loaded: %s\n", path.c_str(), hipGetErrorString(error));
  std::exit(2);
}

hipFunction_t Module::function(const char* name) const {
  hipFunction_t function = nullptr;
  const hipError_t error = hipModuleGetFunction(&function, module_, name);
  if (error == hipSuccess) return function;
  std::fprintf(stderr, "decode: there is no kernel %s: %s\n", name, hipGetErrorString(error));
  std::exit(2);
}
