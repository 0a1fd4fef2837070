// Six streams with priorities and events between them, host functions in streams, copies beside kernels, and enough
// launches that queues of 64 packets wrap around many times.
#include <atomic>

#include "check.h"

__global__ void step(unsigned* values, unsigned factor, unsigned add, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    values[i] = values[i] * factor + add;
}

__global__ void gather(unsigned* out, unsigned* const* in, int streams, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned sum = 0;
  for (int s = 0; s < streams; ++s) sum += in[s][i];
  out[i] = sum;
}

static void note(void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }

int main() {
  constexpr int streams = 6, n = 512, rounds = 300;
  int low = 0, high = 0;
  HIP(hipDeviceGetStreamPriorityRange(&low, &high));
  hipStream_t s[streams];
  hipEvent_t done[streams], began, ended;
  unsigned *device[streams], *pinned[streams];
  for (int k = 0; k < streams; ++k) {
    HIP(hipStreamCreateWithPriority(&s[k], hipStreamNonBlocking, k % 2 ? low : high));
    HIP(hipEventCreateWithFlags(&done[k], hipEventDisableTiming));
    HIP(hipMalloc(&device[k], n * sizeof(unsigned)));
    HIP(hipHostMalloc(&pinned[k], n * sizeof(unsigned)));
    for (int i = 0; i < n; ++i) pinned[k][i] = static_cast<unsigned>(k * 1000 + i);
  }
  HIP(hipEventCreate(&began));
  HIP(hipEventCreate(&ended));
  std::atomic<int> noted{0};
  HIP(hipEventRecord(began, s[0]));
  for (int k = 0; k < streams; ++k)
    HIP(hipMemcpyAsync(device[k], pinned[k], n * sizeof(unsigned), hipMemcpyHostToDevice, s[k]));
  for (int r = 0; r < rounds; ++r)
    for (int k = 0; k < streams; ++k) {
      step<<<2, 128, 0, s[k]>>>(device[k], 3, static_cast<unsigned>(r + k), n);
      launched("step");
    }
  unsigned** table = device_array(std::vector<unsigned*>(device, device + streams));
  unsigned* sum = nullptr;
  HIP(hipMalloc(&sum, n * sizeof(unsigned)));
  for (int k = 0; k < streams; ++k) {
    HIP(hipLaunchHostFunc(s[k], note, &noted));
    HIP(hipEventRecord(done[k], s[k]));
    HIP(hipStreamWaitEvent(s[0], done[k], 0));
  }
  gather<<<4, 128, 0, s[0]>>>(sum, table, streams, n);
  launched("gather");
  HIP(hipEventRecord(ended, s[0]));
  HIP(hipMemcpyAsync(pinned[0], sum, n * sizeof(unsigned), hipMemcpyDeviceToHost, s[0]));
  HIP(hipStreamSynchronize(s[0]));
  EXPECT(noted.load() == streams);
  float milliseconds = -1;
  HIP(hipEventElapsedTime(&milliseconds, began, ended));
  EXPECT(milliseconds > 0);
  for (int i = 0; i < n; ++i) {
    unsigned expected = 0;
    for (int k = 0; k < streams; ++k) {
      unsigned value = static_cast<unsigned>(k * 1000 + i);
      for (int r = 0; r < rounds; ++r) value = value * 3 + static_cast<unsigned>(r + k);
      expected += value;
    }
    EXPECT(pinned[0][i] == expected);
  }
  for (int k = 0; k < streams; ++k) HIP(hipStreamDestroy(s[k]));
  return finish();
}
