#include <hip/hip_runtime.h>

#include "by_value.h"

// All that the kernel uses comes in one struct that is passed by value.
extern "C" __global__ void run_task(Task task) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < task.n) task.out[i] = task.in[i] * 3.0f;
}
