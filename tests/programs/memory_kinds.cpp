// C12: device, pinned host, registered host, managed, and stream-ordered memory.
#include "program.h"

int main() {
  const int n = 3000;
  int* device = device_copy(std::vector<int>(n, 10));
  int *pinned = nullptr, *managed = nullptr, *pooled = nullptr;
  CHECK(hipHostMalloc(&pinned, n * sizeof(int)));
  CHECK(hipMallocManaged(&managed, n * sizeof(int)));
  std::vector<int> pageable(n + 2048, 30);
  int* registered = pageable.data() + 100;  // not at the start of a page
  CHECK(hipHostRegister(registered, n * sizeof(int), hipHostRegisterDefault));
  void* registered_device = nullptr;
  CHECK(hipHostGetDevicePointer(&registered_device, registered, 0));
  hipStream_t stream = nullptr;
  CHECK(hipStreamCreate(&stream));
  int* first = nullptr;
  CHECK(hipMallocAsync(&first, n * sizeof(int), stream));
  CHECK(hipFreeAsync(first, stream));
  CHECK(hipMallocAsync(&pooled, n * sizeof(int), stream));
  for (int i = 0; i < n; ++i) {
    pinned[i] = 20;
    managed[i] = 40;
  }
  hipFunction_t touch = find(load("memory_kinds"), "touch");
  launch_on(stream, touch, (n + 255) / 256, 256, device, pinned, static_cast<int*>(registered_device),
            managed, pooled, n);
  CHECK(hipStreamSynchronize(stream));
  EXPECT(pinned[n - 1] == 22 && registered[n - 1] == 33 && managed[n - 1] == 44);
  EXPECT(pageable[99] == 30 && pageable[100 + n] == 30);
  EXPECT(host_copy(device, n)[n - 1] == 11);
  EXPECT(host_copy(pooled, n)[n - 1] == 11 + 22 + 33 + 44);
  CHECK(hipFreeAsync(pooled, stream));
  CHECK(hipStreamDestroy(stream));
  CHECK(hipHostUnregister(registered));
  CHECK(hipHostFree(pinned));
  CHECK(hipFree(managed));
  CHECK(hipFree(device));
  std::printf("memory_kinds: ok\n");
}
