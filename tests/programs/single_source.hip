// A single-source program: kernels, launches with <<<>>> and symbols in one file. It is compiled without any header but
// kerncap's own.
#include <hip/hip_runtime.h>

extern "C" int printf(const char*, ...);

__constant__ float weights[4];
__device__ int launches;

template <int scale>
__global__ void weigh(const float* x, float* y, int n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) launches += 1;
  if (i < static_cast<unsigned>(n)) y[i] = x[i] * weights[i % 4] * scale;
}

static __global__ void reverse(float* x, int n) {
  extern __shared__ float shared[];
  shared[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = shared[n - 1 - threadIdx.x];
}

int main() {
  constexpr int n = 256;
  float host[n], result[n];
  for (int i = 0; i < n; ++i) host[i] = static_cast<float>(i);
  const float w[4] = {1, 2, 3, 4};
  float *x = nullptr, *y = nullptr;
  if (hipMalloc(&x, sizeof(host)) != hipSuccess || hipMalloc(&y, sizeof(host)) != hipSuccess) return 2;
  if (hipMemcpyToSymbol(HIP_SYMBOL(weights), w, sizeof(w)) != hipSuccess) return 3;
  if (hipMemcpy(x, host, sizeof(host), hipMemcpyHostToDevice) != hipSuccess) return 4;
  weigh<1><<<4, 64>>>(x, y, n);
  weigh<2><<<dim3(2), dim3(128)>>>(x, y, n);
  reverse<<<1, n, n * sizeof(float)>>>(y, n);
  if (hipGetLastError() != hipSuccess || hipDeviceSynchronize() != hipSuccess) return 5;
  if (hipMemcpy(result, y, sizeof(host), hipMemcpyDeviceToHost) != hipSuccess) return 6;
  for (int i = 0; i < n; ++i) {
    const int from = n - 1 - i;
    if (result[i] != host[from] * w[from % 4] * 2) return 1;
  }
  int count = 0;
  if (hipMemcpyFromSymbol(&count, HIP_SYMBOL(launches), sizeof(count)) != hipSuccess || count != 2) return 7;
  printf("single_source: ok\n");
  return 0;
}
