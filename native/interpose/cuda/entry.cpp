// What the driver calls in a process that CUDA_INJECTION64_PATH names this library to, before cuInit returns.
#include "interpose/common/python_hook.h"
#include "interpose/cuda/process.h"

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  kerncap::interpose::cuda::attach();
  kerncap::interpose::watch_running_python();
  return 1;
}
