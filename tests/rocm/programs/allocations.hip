// Memory of every kind that HIP gives: pools in stream order, managed, pinned, registered, mapped by hand.
#include "check.h"

__global__ void increment(int* values, int n, int amount) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] += amount;
}

static void run(int* values, int n, int amount, hipStream_t stream = nullptr) {
  increment<<<(n + 255) / 256, 256, 0, stream>>>(values, n, amount);
  launched("increment");
  HIP(hipGetLastError());
}

int main() {
  constexpr int n = 3000;
  constexpr std::size_t bytes = n * sizeof(int);
  hipStream_t stream;
  HIP(hipStreamCreate(&stream));

  std::vector<int> host(n, 1);
  for (int round = 0; round < 3; ++round) {
    int* pooled = nullptr;
    HIP(hipMallocAsync(reinterpret_cast<void**>(&pooled), bytes, stream));
    HIP(hipMemcpyAsync(pooled, host.data(), bytes, hipMemcpyHostToDevice, stream));
    run(pooled, n, 10, stream);
    HIP(hipMemcpyAsync(host.data(), pooled, bytes, hipMemcpyDeviceToHost, stream));
    HIP(hipFreeAsync(pooled, stream));
  }
  HIP(hipStreamSynchronize(stream));
  EXPECT(host == std::vector<int>(n, 31));

  int* managed = nullptr;
  HIP(hipMallocManaged(&managed, bytes));
  for (int i = 0; i < n; ++i) managed[i] = i;
  HIP(hipMemPrefetchAsync(managed, bytes, 0, stream));
  run(managed, n, 5, stream);
  HIP(hipStreamSynchronize(stream));
  for (int i = 0; i < n; ++i) EXPECT(managed[i] == i + 5);

  int* pinned = nullptr;
  HIP(hipHostMalloc(&pinned, bytes, hipHostMallocMapped));
  for (int i = 0; i < n; ++i) pinned[i] = -i;
  int* pinned_device = nullptr;
  HIP(hipHostGetDevicePointer(reinterpret_cast<void**>(&pinned_device), pinned, 0));
  run(pinned_device, n, 9);
  HIP(hipDeviceSynchronize());
  for (int i = 0; i < n; ++i) EXPECT(pinned[i] == 9 - i);

  std::vector<int> registered(n, 70);
  HIP(hipHostRegister(registered.data(), bytes, hipHostRegisterMapped));
  int* registered_device = nullptr;
  HIP(hipHostGetDevicePointer(reinterpret_cast<void**>(&registered_device), registered.data(), 0));
  run(registered_device, n, 7);
  HIP(hipDeviceSynchronize());
  EXPECT(registered == std::vector<int>(n, 77));
  HIP(hipHostUnregister(registered.data()));

  hipMemAllocationProp properties{};
  properties.type = hipMemAllocationTypePinned;
  properties.location = {hipMemLocationTypeDevice, 0};
  std::size_t granule = 0;
  HIP(hipMemGetAllocationGranularity(&granule, &properties, hipMemAllocationGranularityRecommended));
  const std::size_t size = (bytes + granule - 1) / granule * granule;
  void* reserved = nullptr;
  HIP(hipMemAddressReserve(&reserved, size, 0, nullptr, 0));
  hipMemGenericAllocationHandle_t handle;
  HIP(hipMemCreate(&handle, size, &properties, 0));
  HIP(hipMemMap(reserved, size, 0, handle, 0));
  const hipMemAccessDesc access{{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
  HIP(hipMemSetAccess(reserved, size, &access, 1));
  HIP(hipMemset(reserved, 0, size));
  run(static_cast<int*>(reserved), n, 42);
  EXPECT(host_vector(static_cast<int*>(reserved), n) == std::vector<int>(n, 42));
  HIP(hipMemUnmap(reserved, size));
  HIP(hipMemRelease(handle));
  HIP(hipMemAddressFree(reserved, size));
  HIP(hipHostFree(pinned));
  HIP(hipFree(managed));
  return finish();
}
