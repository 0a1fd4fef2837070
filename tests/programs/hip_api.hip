#include <hip/hip_runtime.h>

struct Mixed {
  char c;
  double d;
  short s;
};

// Arguments of many sizes, so that a wrong layout shows.
extern "C" __global__ void arguments(double* out, char a, short b, int c, long d, float e, Mixed m, unsigned char f) {
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = d;
  out[4] = e;
  out[5] = m.c;
  out[6] = m.d;
  out[7] = m.s;
  out[8] = f;
}

// What the hidden arguments say of the launch.
extern "C" __global__ void geometry(unsigned* out) {
  if (threadIdx.x || threadIdx.y || threadIdx.z || blockIdx.x || blockIdx.y || blockIdx.z) return;
  const unsigned values[] = {gridDim.x, gridDim.y, gridDim.z, blockDim.x, blockDim.y, blockDim.z};
  for (int i = 0; i < 6; ++i) out[i] = values[i];
}

extern "C" __global__ void fill_by_lds(int* out, int words) {
  extern __shared__ int shared[];
  for (int i = threadIdx.x; i < words; i += blockDim.x) shared[i] = i * 3;
  __syncthreads();
  for (int i = threadIdx.x; i < words; i += blockDim.x) out[i] = shared[words - 1 - i];
}

extern "C" __global__ void add_to(int* x, int step, int rounds) {
  int v = x[threadIdx.x];
  for (int i = 0; i < rounds; ++i) v = v * 3 + 1;
  asm volatile("" ::"v"(v));  // so that the rounds are really done
  x[threadIdx.x] += step;
}

extern "C" __global__ void copy_int(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x]; }

__device__ int table[100];
__constant__ long bias = 7;

extern "C" __global__ void read_table(long* out) { out[threadIdx.x] = table[threadIdx.x] + bias; }
