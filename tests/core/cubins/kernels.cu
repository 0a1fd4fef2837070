// What kernels.cubin was made of: nvcc 13.0 -cubin -arch=sm_90a kernels.cu
struct Big {
  char bytes[5000];
};
struct Mixed {
  float x;
  char b;
  double d[3];
};

__constant__ float factors[4] = {1, 2, 3, 4};
__device__ int counter;

namespace {
template <typename T>
__global__ void hidden(T* a, int n) {
  __shared__ T part[64];
  part[threadIdx.x & 63] = a[threadIdx.x];
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < n) a[threadIdx.x] = part[63 - (threadIdx.x & 63)] * factors[1];
}
template __global__ void hidden<float>(float*, int);
}  // namespace

__global__ __launch_bounds__(128) void add(const float* a, const float* b, float* out, int n, Mixed m) {
  extern __shared__ float staged[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  staged[threadIdx.x] = b[i];
  __syncthreads();
  if (i < n) out[i] = a[i] + staged[threadIdx.x] + static_cast<float>(m.d[1]);
  atomicAdd(&counter, 1);
}

__global__ void __cluster_dims__(2, 1, 1) large(Big big, char add, short* p) { p[0] = big.bytes[p[1]] + add; }
