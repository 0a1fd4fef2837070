#include <hip/hip_runtime.h>

#include "pointers.h"

// dst[i] = sum over rows of table[row][i]: pointers in a buffer.
extern "C" __global__ void sum_table(const float* const* table, float* dst, int rows, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int row = 0; row < rows; ++row) sum += table[row][i];
  dst[i] = sum;
}

// Each entry's own input and output, with a bias that may be null: pointers in an array of structures.
extern "C" __global__ void run_entries(const Entry* entries, int count) {
  const Entry entry = entries[blockIdx.x];
  for (int i = threadIdx.x; i < entry.n; i += blockDim.x) {
    entry.out[i] = entry.in[i] * entry.scale + (entry.bias ? entry.bias[i] : 0.0f);
  }
}

// Walks a linked list whose nodes lie in allocations of their own, and changes every node.
extern "C" __global__ void walk_list(Node* head, long* sum) {
  if (threadIdx.x != 0) return;
  long total = 0;
  for (Node* node = head; node; node = node->next) {
    total += node->value;
    node->value += 1;
  }
  *sum = total;
}
