// The CUDA programs of h200.py: `h200_program CASE [N]`.
//   kinds        kernels of each sort that a capture must get right, 5 launches each
//   times        kernels of 5 us to 10 ms, many launches each
//   big GIB      a kernel that reaches GIB of random data through a table of pointers, 3 launches
//   bandwidth    GB/s from the device to pinned memory
//   launches     seconds that a launch takes in loops of 20,000, as JSON
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", doing, cudaGetErrorString(status));
  std::exit(1);
}

template <typename T>
T* allocate(std::size_t count) {
  T* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
  return memory;
}

}  // namespace

__constant__ float coefficients[8];
__device__ unsigned launches_seen;

__global__ void fill(std::uint64_t* p, std::size_t n, std::uint64_t seed) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x) {
    std::uint64_t z = (i + seed) * 0x9E3779B97F4A7C15u;  // splitmix64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    p[i] = z ^ (z >> 31);
  }
}

__global__ void in_place(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * 1.25f + static_cast<float>(i & 7);
}

__global__ void atomic_counts(const unsigned* keys, unsigned* counts, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&local[keys[i] & 255], 1u);
  __syncthreads();
  for (int k = threadIdx.x; k < 256; k += blockDim.x) atomicAdd(&counts[k], local[k]);
}

__global__ void pointer_table(float** rows, int count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; r < count; ++r) {
    if (i < n) rows[r][i] += static_cast<float>(r);
  }
}

__global__ void with_constant(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) atomicAdd(&launches_seen, 1u);
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum = sum * x[i] + coefficients[k];
  y[i] = sum;
}

__global__ void touch(std::uint64_t** table, int count, std::size_t words) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  for (int k = 0; k < count; ++k) {
    if (i < words) table[k][i] += i;
  }
}

#define SPIN(NAME)                                                  \
  __global__ void NAME(float* p, int rounds) {                      \
    float v = p[threadIdx.x];                                       \
    for (int i = 0; i < rounds; ++i) v = fmaf(v, 0.999999f, 1e-6f); \
    p[blockIdx.x * blockDim.x + threadIdx.x] = v;                   \
  }
SPIN(spin_5us)
SPIN(spin_20us)
SPIN(spin_100us)
SPIN(spin_1ms)
SPIN(spin_10ms)

__global__ void stream_200us(const float4* from, float4* to, std::size_t n) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x)
    to[i] = from[i];
}

namespace {

void kinds() {
  const int n = 1 << 20, blocks = n / 256;
  auto* x = allocate<float>(n);
  auto* y = allocate<float>(n);
  auto* keys = allocate<std::uint64_t>(n / 2);
  auto* counts = allocate<unsigned>(256);
  float* rows[6];
  for (float*& row : rows) row = allocate<float>(n), cudaMemset(row, 0, n * 4);
  auto** table = allocate<float*>(6);
  check(cudaMemcpy(table, rows, sizeof rows, cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemset(x, 0, n * 4), "cudaMemset");
  check(cudaMemset(counts, 0, 1024), "cudaMemset");
  const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  check(cudaMemcpyToSymbol(coefficients, values, sizeof values), "cudaMemcpyToSymbol");
  fill<<<256, 256>>>(keys, n / 2, 7);
  for (int k = 0; k < 5; ++k) {
    in_place<<<blocks, 256>>>(x, n);
    atomic_counts<<<blocks, 256>>>(reinterpret_cast<unsigned*>(keys), counts, n);
    pointer_table<<<blocks, 256>>>(table, 6, n);
    with_constant<<<blocks, 256>>>(x, y, n);
  }
}

void times() {
  constexpr double kRoundsAMicrosecond = 186;  // of dependent FMAs, as measured at 1980 MHz
  auto* p = allocate<float>(132 * 4 * 256);
  const std::size_t bytes = 400u << 20;
  auto* from = allocate<float4>(bytes / 16);
  auto* to = allocate<float4>(bytes / 16);
  check(cudaMemset(p, 0, 132 * 4 * 256 * 4), "cudaMemset");
  const auto rounds = [](double us) { return static_cast<int>(us * kRoundsAMicrosecond); };
  for (int i = 0; i < 60; ++i) spin_10ms<<<132 * 4, 256>>>(p, rounds(10000));  // clocks come up
  for (int i = 0; i < 1000; ++i) spin_5us<<<132 * 4, 256>>>(p, rounds(5));
  for (int i = 0; i < 500; ++i) spin_20us<<<132 * 4, 256>>>(p, rounds(20));
  for (int i = 0; i < 300; ++i) spin_100us<<<132 * 4, 256>>>(p, rounds(100));
  for (int i = 0; i < 300; ++i) stream_200us<<<132 * 8, 512>>>(from, to, bytes / 16);
  for (int i = 0; i < 100; ++i) spin_1ms<<<132 * 4, 256>>>(p, rounds(1000));
}

void big(int gib) {
  const std::size_t each = std::size_t{1} << 30;
  std::vector<std::uint64_t*> chunks;
  for (int k = 0; k < gib; ++k) {
    chunks.push_back(allocate<std::uint64_t>(each / 8));
    fill<<<1024, 256>>>(chunks.back(), each / 8, static_cast<std::uint64_t>(k) << 40);
  }
  auto** table = allocate<std::uint64_t*>(chunks.size());
  check(cudaMemcpy(table, chunks.data(), chunks.size() * 8, cudaMemcpyHostToDevice), "cudaMemcpy");
  for (int k = 0; k < 3; ++k) touch<<<1024, 256>>>(table, gib, 1024 * 256);
}

void bandwidth() {
  const std::size_t bytes = std::size_t{2} << 30;
  auto* device = allocate<char>(bytes);
  void* host = nullptr;
  check(cudaMallocHost(&host, bytes), "cudaMallocHost");
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  float best = 1e9f;
  for (int k = 0; k < 5; ++k) {
    cudaEventRecord(begin);
    check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost), "cudaMemcpyAsync");
    cudaEventRecord(end);
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    best = ms < best ? ms : best;
  }
  std::printf("%.2f\n", static_cast<double>(bytes) / best / 1e6);
}

__global__ void empty() {}

template <typename Launch>
void time_launches(const char* name, const char* after, const Launch& launch) {
  constexpr int kLaunches = 20000, kRounds = 9;
  std::printf("\"%s\": [", name);
  for (int round = 0; round <= kRounds; ++round) {  // the first to warm up
    check(cudaDeviceSynchronize(), name);
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) launch();
    check(cudaDeviceSynchronize(), name);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    if (round > 0) std::printf("%.4e%s", took.count() / kLaunches, round < kRounds ? ", " : after);
  }
}

void launches() {
  auto* p = allocate<float>(256);
  std::printf("{");
  time_launches("empty kernel", "], ", [] { empty<<<1, 32>>>(); });
  time_launches("kernel of 5 us", "]}\n", [&] { spin_5us<<<1, 256>>>(p, 5 * 186); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "kinds") kinds();
  if (what == "times") times();
  if (what == "big") big(argc > 2 ? std::atoi(argv[2]) : 1);
  if (what == "bandwidth") bandwidth();
  if (what == "launches") launches();
  check(cudaDeviceSynchronize(), what.c_str());
  return what.empty() ? 2 : 0;
}
