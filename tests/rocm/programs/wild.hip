// A kernel that writes where nothing is. HIP's queue-error callback ends the program by abort().
#include "check.h"

__global__ void wild(int* values) { values[threadIdx.x] = 1; }

int main() {
  wild<<<1, 64>>>(reinterpret_cast<int*>(0x123456789000));
  const hipError_t status = hipDeviceSynchronize();
  std::printf("hipDeviceSynchronize gave %d\n", static_cast<int>(status));
  return 3;
}
