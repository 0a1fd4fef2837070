// A large buffer of random data, and a kernel that changes a little of it: what snapshots are measured with.
#include <hip/hip_runtime_api.h>

#include "../programs/program.h"

int main(int argc, char** argv) {
  const std::size_t bytes = static_cast<std::size_t>(option(argc, argv, "--mib", 1024)) << 20;
  hipModule_t module = load("large_buffer");
  unsigned long long* data = nullptr;
  CHECK(hipMalloc(reinterpret_cast<void**>(&data), bytes));
  const unsigned long long words = bytes / 8;
  unsigned long long state = 0x9E3779B97F4A7C15ull;
  std::vector<unsigned long long> block(1 << 20);
  for (std::size_t at = 0; at < bytes; at += block.size() * 8) {
    for (unsigned long long& word : block) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      word = state;
    }
    const std::size_t size = bytes - at < block.size() * 8 ? bytes - at : block.size() * 8;
    CHECK(hipMemcpy(reinterpret_cast<char*>(data) + at, block.data(), size, hipMemcpyHostToDevice));
  }
  launch(find(module, "touch"), 64, 256, data, words);
  CHECK(hipDeviceSynchronize());
}
