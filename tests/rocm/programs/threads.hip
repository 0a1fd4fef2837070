// Eight host threads that launch, copy, allocate and wait at once: on the default stream of each thread, on one that they
// share, and through graphs of their own.
#include <atomic>
#include <thread>

#include "check.h"

__global__ void work(unsigned* values, unsigned add, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = values[i] * 7 + add;
}

__global__ void count(unsigned long long* counter) {
  if (threadIdx.x == 0) atomicAdd(counter, 1ull);
}

static std::atomic<long> works{0}, counts{0};

static void run(unsigned number, hipStream_t shared, unsigned long long* counter) {
  constexpr int n = 700, rounds = 40;
  hipStream_t stream;
  HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  std::vector<unsigned> expected(n), values(n);
  for (int i = 0; i < n; ++i) expected[i] = values[i] = number * 1000 + static_cast<unsigned>(i);
  unsigned* device = nullptr;
  HIP(hipMalloc(&device, n * sizeof(unsigned)));
  HIP(hipMemcpyAsync(device, values.data(), n * sizeof(unsigned), hipMemcpyHostToDevice, stream));
  HIP(hipStreamSynchronize(stream));
  for (unsigned r = 0; r < rounds; ++r) {
    work<<<3, 256, 0, stream>>>(device, r, n);
    count<<<1, 64, 0, shared>>>(counter);
    for (unsigned& value : expected) value = value * 7 + r;
    if (r % 8 != 7) continue;
    void* other = nullptr;
    HIP(hipMalloc(&other, 100'000));
    HIP(hipMemcpyAsync(values.data(), device, n * sizeof(unsigned), hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    EXPECT(values == expected);
    HIP(hipFree(other));
  }
  works += rounds;
  counts += rounds;
  hipGraph_t graph;
  hipGraphExec_t exec;
  HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
  for (unsigned r = 0; r < 10; ++r) work<<<3, 256, 0, stream>>>(device, r, n);
  HIP(hipStreamEndCapture(stream, &graph));
  HIP(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  for (int launch = 0; launch < 5; ++launch) {
    HIP(hipGraphLaunch(exec, stream));
    for (unsigned r = 0; r < 10; ++r)
      for (unsigned& value : expected) value = value * 7 + r;
  }
  works += 50;
  // Not on the null stream, which must not be used while another thread captures.
  HIP(hipMemcpyAsync(values.data(), device, n * sizeof(unsigned), hipMemcpyDeviceToHost, stream));
  HIP(hipStreamSynchronize(stream));
  EXPECT(values == expected);
  HIP(hipGraphExecDestroy(exec));
  HIP(hipGraphDestroy(graph));
  HIP(hipFree(device));
  HIP(hipStreamDestroy(stream));
}

int main() {
  hipStream_t shared;
  HIP(hipStreamCreate(&shared));
  unsigned long long* counter = device_array(std::vector<unsigned long long>(1, 0));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) threads.emplace_back(run, t, shared, counter);
  for (std::thread& thread : threads) thread.join();
  HIP(hipDeviceSynchronize());
  launched("work", works);
  launched("count", counts);
  EXPECT(host_vector(counter, 1)[0] == static_cast<unsigned long long>(counts));
  return finish();
}
