// All devices at once: each runs kernels on its own memory, then takes what the one before it made.
#include "check.h"

__global__ void fill(int* values, int device, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = device * 100'000 + i;
}

__global__ void take(int* values, const int* theirs, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] += theirs[i];
}

__global__ void only_on_the_last(int* values) { values[threadIdx.x] *= 3; }

int main() {
  int count = 0;
  HIP(hipGetDeviceCount(&count));
  constexpr int n = 5000, blocks = (n + 127) / 128;
  std::vector<int*> own(count), copy(count);
  std::vector<hipStream_t> streams(count);
  for (int d = 0; d < count; ++d) {
    HIP(hipSetDevice(d));
    for (int peer = 0; peer < count; ++peer) {
      int able = 0;
      if (peer != d) HIP(hipDeviceCanAccessPeer(&able, d, peer));
      if (able) HIP(hipDeviceEnablePeerAccess(peer, 0));
    }
    HIP(hipStreamCreate(&streams[d]));
    HIP(hipMalloc(&own[d], n * sizeof(int)));
    HIP(hipMalloc(&copy[d], n * sizeof(int)));
  }
  for (int d = 0; d < count; ++d) {
    HIP(hipSetDevice(d));
    fill<<<blocks, 128, 0, streams[d]>>>(own[d], d, n);
    launched("fill");
  }
  for (int d = 0; d < count; ++d) HIP(hipStreamSynchronize(streams[d]));
  for (int d = 0; d < count; ++d) {
    HIP(hipSetDevice(d));
    const int from = (d + 1) % count;
    HIP(hipMemcpyPeerAsync(copy[d], d, own[from], from, n * sizeof(int), streams[d]));
    take<<<blocks, 128, 0, streams[d]>>>(copy[d], own[d], n);
    launched("take");
  }
  HIP(hipSetDevice(count - 1));
  only_on_the_last<<<1, 64, 0, streams[count - 1]>>>(copy[count - 1]);
  launched("only_on_the_last");
  for (int d = 0; d < count; ++d) {
    HIP(hipSetDevice(d));
    HIP(hipStreamSynchronize(streams[d]));
    const std::vector<int> got = host_vector(copy[d], n);
    for (int i = 0; i < n; ++i) {
      const int sum = (d + (d + 1) % count) * 100'000 + 2 * i;
      EXPECT(got[i] == (d == count - 1 && i < 64 ? sum * 3 : sum));
    }
  }
  std::printf("devices %d\n", count);
  return finish();
}
