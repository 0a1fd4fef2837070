// Every way to launch a kernel from the host: templates, lambdas, static kernels, kernels of one name in two namespaces,
// structs by value, dynamic LDS, hipLaunchKernel with an array of arguments, grids of three dimensions.
//   launches [COUNT]   COUNT small launches more, for measuring what one costs
#include <cstring>

#include "check.h"

template <typename T, int scale>
__global__ void multiply(T* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = values[i] * static_cast<T>(scale) + static_cast<T>(1);
}

template <typename F>
__global__ void apply(F function, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) function(i);
}

namespace {
__global__ void add(int* values, int amount) { values[threadIdx.x] += amount; }
}  // namespace
namespace other {
__global__ void add(int* values, int amount) { values[threadIdx.x] += amount * 100; }
}  // namespace other

struct Matrix {
  float a[3][3];
  double offset;
  char tag;
};

static __global__ void transform(Matrix m, float* x) {
  float* v = x + 3 * threadIdx.x;
  float r[3];
  for (int i = 0; i < 3; ++i) r[i] = m.a[i][0] * v[0] + m.a[i][1] * v[1] + m.a[i][2] * v[2];
  for (int i = 0; i < 3; ++i) v[i] = r[i] + static_cast<float>(m.offset) + m.tag;
}

__global__ void reverse(float* x) {
  extern __shared__ float shared[];
  shared[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

__global__ void place(int* out) {
  const dim3 g = gridDim, b = blockDim;
  const unsigned x = blockIdx.x * b.x + threadIdx.x, y = blockIdx.y * b.y + threadIdx.y;
  const unsigned z = blockIdx.z * b.z + threadIdx.z;
  out[(z * g.y * b.y + y) * g.x * b.x + x] = static_cast<int>(x | y << 8 | z << 16);
}

__global__ void tick(unsigned* counter) {
  if (threadIdx.x == 0) *counter += 1;
}

int main(int count, char** arguments) {
  const long more = count > 1 ? std::atol(arguments[1]) : 0;
  constexpr int n = 1000;
  float* f = device_array(std::vector<float>(n, 2.0f));
  double* d = device_array(std::vector<double>(n, 3.0));
  int* i = device_array(std::vector<int>(n, 5));
  multiply<float, 3><<<4, 256>>>(f, n);
  multiply<double, 4><<<4, 256>>>(d, n);
  multiply<int, 5><<<4, 256>>>(i, n);
  launched("multiply", 3);
  EXPECT(host_vector(f, n) == std::vector<float>(n, 7.0f));
  EXPECT(host_vector(d, n) == std::vector<double>(n, 13.0));
  EXPECT(host_vector(i, n) == std::vector<int>(n, 26));

  const int base = 40;
  apply<<<4, 256>>>([=] __device__(int k) { i[k] = base + k; }, n);
  apply<<<4, 256>>>([=] __device__(int k) { i[k] -= 2 * k; }, n);
  launched("apply", 2);
  add<<<1, 64>>>(i, 3);
  other::add<<<1, 64>>>(i, 3);
  launched("add", 2);
  std::vector<int> integers = host_vector(i, n);
  for (int k = 0; k < n; ++k) EXPECT(integers[k] == base - k + (k < 64 ? 303 : 0));

  const Matrix rotate{{{0, 1, 0}, {0, 0, 1}, {1, 0, 0}}, 0.5, 2};
  std::vector<float> points(300);
  for (int k = 0; k < 300; ++k) points[k] = static_cast<float>(k);
  HIP(hipMemcpy(f, points.data(), 300 * sizeof(float), hipMemcpyHostToDevice));
  transform<<<1, 100>>>(rotate, f);
  launched("transform");
  std::vector<float> moved = host_vector(f, 300);
  for (int k = 0; k < 300; ++k) EXPECT(moved[k] == points[k / 3 * 3 + (k % 3 + 1) % 3] + 2.5f);

  void* values[] = {&f};
  HIP(hipLaunchKernel(reinterpret_cast<const void*>(&reverse), dim3(1), dim3(300), values, 300 * sizeof(float), nullptr));
  launched("reverse");
  std::vector<float> turned = host_vector(f, 300);
  for (int k = 0; k < 300; ++k) EXPECT(turned[k] == moved[299 - k]);

  constexpr int gx = 3, gy = 2, gz = 4, bx = 5, by = 4, bz = 3, total = gx * gy * gz * bx * by * bz;
  int* placed = device_array(std::vector<int>(total, -1));
  place<<<dim3(gx, gy, gz), dim3(bx, by, bz)>>>(placed);
  launched("place");
  std::vector<int> where = host_vector(placed, total);
  for (int k = 0; k < total; ++k) {
    const int x = k % (gx * bx), y = k / (gx * bx) % (gy * by), z = k / (gx * bx) / (gy * by);
    EXPECT(where[k] == (x | y << 8 | z << 16));
  }

  unsigned* counter = device_array(std::vector<unsigned>(1, 0));
  for (long k = 0; k < more; ++k) tick<<<1, 64>>>(counter);
  HIP(hipDeviceSynchronize());
  if (more != 0) launched("tick", more);
  EXPECT(host_vector(counter, 1)[0] == more);
  return finish();
}
