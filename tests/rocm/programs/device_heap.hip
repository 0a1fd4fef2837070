// Kernels that are served by the host while they run: printf, and malloc and free on the device.
#include "check.h"

struct Node {
  Node* next;
  int value;
};

__global__ void say(int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) printf("item %d of %s: %.2f %c\n", i, "a kernel", i * 0.5, 'a' + i);
}

__global__ void push(Node** lists, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; r < rounds; ++r) {
    auto* node = static_cast<Node*>(malloc(sizeof(Node)));
    if (node == nullptr) return;
    node->value = i + r;
    node->next = lists[i];
    lists[i] = node;
  }
}

__global__ void pop_all(Node** lists, int* sums) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = 0;
  while (lists[i] != nullptr) {
    Node* node = lists[i];
    sum += node->value;
    lists[i] = node->next;
    free(node);
  }
  sums[i] = sum;
}

// Blocks too large for the heap's slabs: the host allocates and frees each while the kernel runs.
__global__ void borrow(int* sums, int words) {
  auto* block = static_cast<int*>(malloc(words * sizeof(int)));
  if (block == nullptr) return;
  for (int k = 0; k < words; k += 512) block[k] = k + static_cast<int>(threadIdx.x);
  int sum = 0;
  for (int k = 0; k < words; k += 512) sum += block[k];
  free(block);
  sums[threadIdx.x] = sum;
}

int main() {
  say<<<2, 8>>>(10);
  launched("say");
  HIP(hipDeviceSynchronize());

  constexpr int lists = 128, rounds = 20;
  Node** heads = device_array(std::vector<Node*>(lists, nullptr));
  int* sums = device_array(std::vector<int>(lists, -1));
  for (int round = 0; round < 2; ++round) {
    push<<<2, lists / 2>>>(heads, rounds);
    launched("push");
    pop_all<<<2, lists / 2>>>(heads, sums);
    launched("pop_all");
    const std::vector<int> got = host_vector(sums, lists);
    for (int i = 0; i < lists; ++i) EXPECT(got[i] == rounds * i + rounds * (rounds - 1) / 2);
  }
  constexpr int words = 100'000, borrowers = 8, steps = (words + 511) / 512;
  borrow<<<1, borrowers>>>(sums, words);
  launched("borrow");
  const std::vector<int> got = host_vector(sums, borrowers);
  for (int t = 0; t < borrowers; ++t) EXPECT(got[t] == 512 * (steps * (steps - 1) / 2) + steps * t);
  return finish();
}
