#include <hip/hip_runtime.h>

// Kernels that share parts of their names: instances of a template, an overload, and longer names.
enum Kind { plain = 0, doubled = 39 };

template <Kind kind, typename T>
__global__ void __launch_bounds__(256) scale(T* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * static_cast<T>(kind == doubled ? 2 : 3);
}
template __global__ void scale<plain, float>(float*, int);
template __global__ void scale<doubled, float>(float*, int);
template __global__ void scale<doubled, int>(int*, int);

extern "C" __global__ void scale_all(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1.0f;
}

// The same name in two units, with different code: each is in a code object of its own.
extern "C" __global__ void twin(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 10.0f;
}
