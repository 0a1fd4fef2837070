// A kernel and the host that talk while it runs, streams that wait for values in memory, and managed variables.
#include <atomic>
#include <thread>

#include "check.h"

__managed__ int managed_total = 100;

__global__ void answer(volatile int* request, volatile int* reply, int rounds) {
  if (threadIdx.x != 0) return;
  for (int r = 1; r <= rounds; ++r) {
    while (*request != r) __builtin_amdgcn_s_sleep(1);
    *reply = r * r;
    __threadfence_system();
  }
}

__global__ void add(int* values, int amount) { values[threadIdx.x] += amount; }

__global__ void add_managed(int amount) { atomicAdd(&managed_total, amount); }

int main() {
  constexpr int rounds = 50;
  int* mailbox = nullptr;
  HIP(hipHostMalloc(&mailbox, 2 * sizeof(int), hipHostMallocCoherent));
  mailbox[0] = mailbox[1] = 0;
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));
  answer<<<1, 64, 0, stream>>>(mailbox, mailbox + 1, rounds);
  launched("answer");
  for (int r = 1; r <= rounds; ++r) {
    reinterpret_cast<std::atomic<int>*>(mailbox)->store(r);
    while (reinterpret_cast<std::atomic<int>*>(mailbox + 1)->load() != r * r) std::this_thread::yield();
  }
  HIP(hipStreamSynchronize(stream));

  int* values = device_array(std::vector<int>(64, 1));
  unsigned* gate = nullptr;
  HIP(hipExtMallocWithFlags(reinterpret_cast<void**>(&gate), 8, hipMallocSignalMemory));
  *gate = 0;
  HIP(hipStreamWaitValue32(stream, gate, 5, hipStreamWaitValueGte));
  add<<<1, 64, 0, stream>>>(values, 10);
  launched("add");
  EXPECT(hipStreamQuery(stream) == hipErrorNotReady);
  hipStream_t opener;
  HIP(hipStreamCreateWithFlags(&opener, hipStreamNonBlocking));
  HIP(hipStreamWriteValue32(opener, gate, 6, 0));
  HIP(hipStreamSynchronize(stream));
  EXPECT(host_vector(values, 64) == std::vector<int>(64, 11));

  add_managed<<<2, 64>>>(3);
  launched("add_managed");
  HIP(hipDeviceSynchronize());
  EXPECT(managed_total == 100 + 2 * 64 * 3);
  managed_total = 7;
  add_managed<<<1, 1>>>(1);
  launched("add_managed");
  HIP(hipDeviceSynchronize());
  EXPECT(managed_total == 8);
  return finish();
}
