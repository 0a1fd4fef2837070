// A failed assertion on the device: each work-item's is printed, and the trap that follows ends the program.
#include <cassert>

#include "check.h"

__global__ void checks(int* values, int limit) {
  assert(values[threadIdx.x] < limit && "too large");
  values[threadIdx.x] += 1;
}

int main() {
  int* values = device_array(std::vector<int>(64, 5));
  checks<<<1, 64>>>(values, 10);
  EXPECT(host_vector(values, 64) == std::vector<int>(64, 6));
  std::printf("before\n");
  std::fflush(stdout);
  checks<<<1, 64>>>(values, 3);
  const hipError_t status = hipDeviceSynchronize();
  std::printf("hipDeviceSynchronize gave %d\n", static_cast<int>(status));
  return 3;
}
