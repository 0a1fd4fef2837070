// Cooperative launches: every workgroup waits for every other one, several times.
#include <hip/hip_cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

// values[i] takes values[(i + stride) % n] for stride 1, 2, 4, ...: each step needs the whole step before.
__global__ void shift_and_add(unsigned* a, unsigned* b, int n, int steps) {
  const cg::grid_group grid = cg::this_grid();
  const int i = static_cast<int>(grid.thread_rank());
  for (int s = 0; s < steps; ++s) {
    const unsigned* from = s % 2 ? b : a;
    unsigned* to = s % 2 ? a : b;
    if (i < n) to[i] = from[i] + from[(i + (1 << s)) % n];
    grid.sync();
  }
}

__global__ void sum_of_block(const unsigned* in, unsigned* out) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
  unsigned value = in[block.group_index().x * block.size() + block.thread_rank()];
  for (int delta = 16; delta > 0; delta /= 2) value += tile.shfl_down(value, delta);
  if (tile.thread_rank() == 0) atomicAdd(&out[block.group_index().x], value);
}

int main() {
  int device = 0, able = 0, per_unit = 0;
  HIP(hipGetDevice(&device));
  HIP(hipDeviceGetAttribute(&able, hipDeviceAttributeCooperativeLaunch, device));
  EXPECT(able == 1);
  HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, shift_and_add, 256, 0));
  EXPECT(per_unit >= 1);
  constexpr int n = 16 * 256, steps = 7;
  std::vector<unsigned> values(n);
  for (int i = 0; i < n; ++i) values[i] = static_cast<unsigned>(i * i + 3);
  unsigned* a = device_array(values);
  unsigned* b = device_array(std::vector<unsigned>(n, 0));
  int count = n, how_many = steps;
  void* arguments[] = {&a, &b, &count, &how_many};
  for (int round = 0; round < 2; ++round) {
    HIP(hipMemcpy(a, values.data(), n * sizeof(unsigned), hipMemcpyHostToDevice));
    HIP(hipLaunchCooperativeKernel(reinterpret_cast<void*>(&shift_and_add), dim3(n / 256), dim3(256), arguments, 0, nullptr));
    launched("shift_and_add");
    HIP(hipDeviceSynchronize());
  }
  std::vector<unsigned> now = values, next(n);
  for (int s = 0; s < steps; ++s) {
    for (int i = 0; i < n; ++i) next[i] = now[i] + now[(i + (1 << s)) % n];
    now.swap(next);
  }
  EXPECT(host_vector(steps % 2 ? b : a, n) == now);

  unsigned* sums = device_array(std::vector<unsigned>(n / 256, 0));
  sum_of_block<<<n / 256, 256>>>(steps % 2 ? b : a, sums);
  launched("sum_of_block");
  const std::vector<unsigned> got = host_vector(sums, n / 256);
  for (int k = 0; k < n / 256; ++k) {
    unsigned expected = 0;
    for (int i = 0; i < 256; ++i) expected += now[k * 256 + i];
    EXPECT(got[k] == expected);
  }
  return finish();
}
