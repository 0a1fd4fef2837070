// Kernels and memory of every kind that captures must get right. `kinds NAME [N]` runs one case N times and prints
// an XXH-free checksum of its result, so that a run under kerncap can be held against one without.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace cg = cooperative_groups;

#define CHECK(call)                                                                       \
  do {                                                                                    \
    const cudaError_t e_ = (call);                                                        \
    if (e_ != cudaSuccess) {                                                              \
      std::printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));              \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)
#define DRIVER(call)                                                                      \
  do {                                                                                    \
    const CUresult e_ = (call);                                                           \
    if (e_ != CUDA_SUCCESS) {                                                             \
      std::printf("%s:%d driver error %d\n", __FILE__, __LINE__, static_cast<int>(e_));   \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)

__constant__ float weights[64];
__device__ int counter = 5;
__device__ float table[256];
__device__ float* pointer_variable;

extern "C" __global__ void saxpy(float* y, const float* x, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void with_constant(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = out[i] * weights[i % 64] + table[i % 256];
  if (i == 0) atomicAdd(&counter, 3), table[7] += 1.0f;
}
extern "C" __global__ void through_variable(int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) pointer_variable[i] += 2.0f;
}
extern "C" __global__ void of_table(float* const* rows, int rows_n, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; r < rows_n; ++r)
    if (i < n) rows[r][i] += static_cast<float>(r);
}
extern "C" __global__ void histogram(unsigned* bins, const unsigned* in, int n) {
  extern __shared__ unsigned local[];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[in[i] % 1024], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}
extern "C" __global__ void cooperative(float* data, int n) {
  cg::grid_group grid = cg::this_grid();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) data[i] += 1.0f;
  grid.sync();
  if (grid.thread_rank() == 0) data[0] += data[n - 1];
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(int* out) {
  __shared__ int mine;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) mine = blockIdx.x * 10;
  cluster.sync();
  const int* other = cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
  if (threadIdx.x == 0) out[blockIdx.x] += *other;
  cluster.sync();
}
extern "C" __global__ void wide_cluster(int* out) {
  __shared__ int mine;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) mine = blockIdx.x;
  cluster.sync();
  int sum = 0;
  for (unsigned r = 0; r < cluster.num_blocks(); ++r) sum += *cluster.map_shared_rank(&mine, r);
  if (threadIdx.x == 0) out[blockIdx.x] += sum;
  cluster.sync();
}
struct ByValue {
  char tag;
  float* data;
  int n;
  double scale;
};
extern "C" __global__ void by_value(char c, ByValue v, short s) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < v.n) v.data[i] = v.data[i] * static_cast<float>(v.scale) + c + s + v.tag;
}
extern "C" __global__ void spin(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}
namespace {
template <typename T>
__global__ void templated(T* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = data[i] * T(3) + T(1);
}
}  // namespace

constexpr int kN = 100000;
constexpr int kBlock = 256;
constexpr int kGrid = (kN + kBlock - 1) / kBlock;

template <typename T>
std::vector<T> ramp(int n) {
  std::vector<T> v(n);
  for (int i = 0; i < n; ++i) v[i] = static_cast<T>((i * 37) % 1001);
  return v;
}
std::uint64_t total = 1469598103934665603ull;
void add(const void* data, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) total = (total ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211ull;
}
template <typename T>
void add_device(const T* device, int n) {
  std::vector<T> host(n);
  CHECK(cudaMemcpy(host.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost));
  add(host.data(), n * sizeof(T));
}
template <typename T>
T* uploaded(int n) {
  T* p = nullptr;
  CHECK(cudaMalloc(&p, n * sizeof(T)));
  CHECK(cudaMemcpy(p, ramp<T>(n).data(), n * sizeof(T), cudaMemcpyHostToDevice));
  return p;
}

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "saxpy";
  const int times = argc > 2 ? std::atoi(argv[2]) : 3;
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  if (is("saxpy")) {
    float *y = uploaded<float>(kN), *x = uploaded<float>(kN);
    for (int k = 0; k < times; ++k) saxpy<<<kGrid, kBlock>>>(y, x, 1.5f, kN);
    add_device(y, kN);
  } else if (is("devices")) {  // one after the other, each with memory of its own
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    std::vector<float*> y(devices), x(devices);
    for (int d = 0; d < devices; ++d) {
      CHECK(cudaSetDevice(d));
      y[d] = uploaded<float>(kN), x[d] = uploaded<float>(kN);
    }
    for (int k = 0; k < times; ++k) {
      for (int d = 0; d < devices; ++d) {
        CHECK(cudaSetDevice(d));
        saxpy<<<kGrid, kBlock>>>(y[d], x[d], 1.5f + d, kN);
      }
    }
    for (int d = 0; d < devices; ++d) {
      CHECK(cudaSetDevice(d));
      add_device(y[d], kN);
    }
  } else if (is("reset")) {  // the device is reset between two lives; the kernel's handle is another then
    for (int life = 0; life < 2; ++life) {
      if (life == 1) CHECK(cudaDeviceReset());
      for (int k = 0; k < 5; ++k) uploaded<float>(kN);
      float *y = uploaded<float>(kN), *x = uploaded<float>(kN);
      for (int k = 0; k < times; ++k) saxpy<<<kGrid, kBlock>>>(y, x, 1.5f + life, kN);
      add_device(y, kN);
    }
  } else if (is("peer")) {  // the last device's kernel reads memory of the first
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    float* x = uploaded<float>(kN);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(devices - 1));
    CHECK(cudaDeviceEnablePeerAccess(0, 0));
    float* y = uploaded<float>(kN);
    for (int k = 0; k < times; ++k) saxpy<<<kGrid, kBlock>>>(y, x, 1.5f, kN);
    add_device(y, kN);
  } else if (is("launches")) {
    float *y = uploaded<float>(kN), *x = uploaded<float>(kN);
    for (int k = 0; k < times; ++k) saxpy<<<kGrid, kBlock>>>(y, x, 0.5f, 1000);
    CHECK(cudaDeviceSynchronize());
    add_device(y, kN);
  } else if (is("variables")) {
    CHECK(cudaMemcpyToSymbol(weights, ramp<float>(64).data(), sizeof weights));
    CHECK(cudaMemcpyToSymbol(table, ramp<float>(256).data(), sizeof table));
    float* out = uploaded<float>(kN);
    for (int k = 0; k < times; ++k) with_constant<<<kGrid, kBlock>>>(out, kN);
    add_device(out, kN);
    int c = 0;
    CHECK(cudaMemcpyFromSymbol(&c, counter, sizeof c));
    add(&c, sizeof c);
  } else if (is("through")) {
    float* out = uploaded<float>(kN);
    CHECK(cudaMemcpyToSymbol(pointer_variable, &out, sizeof out));
    for (int k = 0; k < times; ++k) through_variable<<<kGrid, kBlock>>>(kN);
    add_device(out, kN);
  } else if (is("table")) {
    std::vector<float*> rows;
    for (int r = 0; r < 8; ++r) rows.push_back(uploaded<float>(kN));
    float** device_rows = nullptr;
    CHECK(cudaMalloc(&device_rows, 8 * sizeof(float*)));
    CHECK(cudaMemcpy(device_rows, rows.data(), 8 * sizeof(float*), cudaMemcpyHostToDevice));
    float* unrelated = uploaded<float>(kN);
    for (int k = 0; k < times; ++k) of_table<<<kGrid, kBlock>>>(device_rows, 8, kN);
    for (float* row : rows) add_device(row, kN);
    add_device(unrelated, kN);
  } else if (is("symbol_argument")) {
    float* address = nullptr;
    CHECK(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), table));
    CHECK(cudaMemcpyToSymbol(table, ramp<float>(256).data(), sizeof table));
    float* x = uploaded<float>(256);
    for (int k = 0; k < times; ++k) saxpy<<<1, kBlock>>>(address, x, 2.0f, 256);
    add_device(address, 256);
  } else if (is("histogram")) {
    unsigned* bins = nullptr;
    CHECK(cudaMalloc(&bins, 4096));
    CHECK(cudaMemset(bins, 0, 4096));
    unsigned* in = uploaded<unsigned>(kN);
    CHECK(cudaFuncSetAttribute(histogram, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
    for (int k = 0; k < times; ++k) histogram<<<64, kBlock, 100 << 10>>>(bins, in, kN);
    add_device(bins, 1024);
  } else if (is("cooperative")) {
    float* data = uploaded<float>(kN);
    int n = kN;
    void* arguments[] = {&data, &n};
    for (int k = 0; k < times; ++k)
      CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(cooperative), 64, kBlock, arguments));
    add_device(data, kN);
  } else if (is("cluster")) {
    int* out = uploaded<int>(64);
    for (int k = 0; k < times; ++k) clustered<<<64, 32>>>(out);
    add_device(out, 64);
  } else if (is("wide_cluster")) {
    int* out = uploaded<int>(64);
    CHECK(cudaFuncSetAttribute(wide_cluster, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    cudaLaunchConfig_t config = {};
    config.gridDim = 64;
    config.blockDim = 32;
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 16, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    for (int k = 0; k < times; ++k) CHECK(cudaLaunchKernelEx(&config, wide_cluster, out));
    add_device(out, 64);
  } else if (is("by_value")) {
    float* data = uploaded<float>(kN);
    for (int k = 0; k < times; ++k) by_value<<<kGrid, kBlock>>>('c', ByValue{'t', data, kN, 1.25}, short(-3));
    add_device(data, kN);
  } else if (is("templated")) {
    int* data = uploaded<int>(kN);
    float* floats = uploaded<float>(kN);
    for (int k = 0; k < times; ++k) templated<int><<<kGrid, kBlock>>>(data, kN), templated<float><<<kGrid, kBlock>>>(floats, kN);
    add_device(data, kN);
    add_device(floats, kN);
  } else if (is("async")) {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *y = nullptr, *x = uploaded<float>(kN);
    CHECK(cudaMallocAsync(&y, kN * sizeof(float), stream));
    CHECK(cudaMemcpyAsync(y, ramp<float>(kN).data(), kN * sizeof(float), cudaMemcpyHostToDevice, stream));
    spin<<<1, 1, 0, stream>>>(20000000);
    for (int k = 0; k < times; ++k) saxpy<<<kGrid, kBlock, 0, stream>>>(y, x, 1.5f, kN);
    CHECK(cudaStreamSynchronize(stream));
    add_device(y, kN);
    CHECK(cudaFreeAsync(y, stream));
  } else if (is("managed")) {
    float *y = nullptr, *x = nullptr, *z = nullptr;
    CHECK(cudaMallocManaged(&y, kN * sizeof(float)));
    CHECK(cudaMallocHost(&x, kN * sizeof(float)));
    std::memcpy(y, ramp<float>(kN).data(), kN * sizeof(float));
    std::memcpy(x, ramp<float>(kN).data(), kN * sizeof(float));
    for (int k = 0; k < times; ++k) saxpy<<<kGrid, kBlock>>>(y, x, 1.5f, kN);
    CHECK(cudaDeviceSynchronize());
    add(y, kN * sizeof(float));
    z = static_cast<float*>(std::aligned_alloc(4096, 512 << 10));
    std::memcpy(z, ramp<float>(kN).data(), kN * sizeof(float));
    CHECK(cudaHostRegister(z, 512 << 10, cudaHostRegisterMapped));
    saxpy<<<kGrid, kBlock>>>(z, x, 0.5f, kN);
    CHECK(cudaDeviceSynchronize());
    add(z, kN * sizeof(float));
  } else if (is("vmm")) {
    DRIVER(cuInit(0));
    CHECK(cudaFree(nullptr));
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUdeviceptr base = 0;
    CUmemGenericAllocationHandle a, b;
    DRIVER(cuMemAddressReserve(&base, 64 << 20, 0, 0, 0));
    DRIVER(cuMemCreate(&a, 2 << 20, &properties, 0));
    DRIVER(cuMemCreate(&b, 4 << 20, &properties, 0));
    DRIVER(cuMemMap(base, 2 << 20, 0, a, 0));
    DRIVER(cuMemMap(base + (2 << 20), 4 << 20, 0, b, 0));
    CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    DRIVER(cuMemSetAccess(base, 6 << 20, &access, 1));
    const int n = (6 << 20) / 4;
    auto* y = reinterpret_cast<float*>(base);
    CHECK(cudaMemcpy(y, ramp<float>(n).data(), 6 << 20, cudaMemcpyHostToDevice));
    for (int k = 0; k < times; ++k) saxpy<<<(n + kBlock - 1) / kBlock, kBlock>>>(y, y, 0.25f, n);
    add_device(y, n);
  } else if (is("graph")) {
    float *y = uploaded<float>(kN), *x = uploaded<float>(kN);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int k = 0; k < 4; ++k) saxpy<<<kGrid, kBlock, 0, stream>>>(y, x, 1.5f, kN);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int k = 0; k < times; ++k) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    saxpy<<<kGrid, kBlock, 0, stream>>>(y, x, 1.5f, kN);
    CHECK(cudaStreamSynchronize(stream));
    add_device(y, kN);
  } else if (is("streams")) {
    float *y = uploaded<float>(kN), *x = uploaded<float>(kN), *other = uploaded<float>(kN);
    std::thread threads[4];
    for (auto& t : threads) {
      t = std::thread([&] {
        cudaStream_t s;
        CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
        for (int k = 0; k < 2000; ++k) saxpy<<<kGrid, kBlock, 0, s>>>(other, x, 0.0f, kN);
        CHECK(cudaStreamSynchronize(s));
      });
    }
    for (int k = 0; k < times; ++k) of_table<<<1, 1>>>(nullptr, 0, 0), templated<float><<<kGrid, kBlock>>>(y, kN);
    for (auto& t : threads) t.join();
    CHECK(cudaDeviceSynchronize());
    add_device(y, kN);
  } else if (is("big")) {
    // `times` GiB of memory that holds no two equal blocks.
    const std::size_t words = std::size_t(times) << 27;
    std::uint64_t* data = nullptr;
    CHECK(cudaMalloc(&data, words * 8));
    std::vector<std::uint64_t> piece(1 << 24);
    std::uint64_t x = 88172645463325252ull;
    for (std::size_t at = 0; at < words; at += piece.size()) {
      for (auto& w : piece) x ^= x << 13, x ^= x >> 7, x ^= x << 17, w = x;
      CHECK(cudaMemcpy(data + at, piece.data(), piece.size() * 8, cudaMemcpyHostToDevice));
    }
    float* y = uploaded<float>(kN);
    saxpy<<<kGrid, kBlock>>>(y, reinterpret_cast<float*>(data), 0.0f, kN);
    add_device(y, kN);
  } else if (is("endless")) {
    spin<<<1, 1>>>(1ll << 60);
    CHECK(cudaDeviceSynchronize());
  } else {
    std::printf("no case %s\n", name);
    return 2;
  }
  CHECK(cudaDeviceSynchronize());
  std::printf("%s %016llx\n", name, static_cast<unsigned long long>(total));
  return 0;
}
