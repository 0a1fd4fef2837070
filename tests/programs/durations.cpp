// R9: a long kernel (--rounds, 2000000) and a tiny one, --launches (5) of each.
#include "program.h"

int main(int argc, char** argv) {
  const int rounds = static_cast<int>(option(argc, argv, "--rounds", 2000000));
  const long launches = option(argc, argv, "--launches", 5);
  hipModule_t module = load("durations");
  hipFunction_t work_for = find(module, "work_for"), tiny = find(module, "tiny");
  float* x = device_copy(std::vector<float>(64, 1.0f));
  hipEvent_t start = nullptr, middle = nullptr, stop = nullptr;
  CHECK(hipEventCreate(&start));
  CHECK(hipEventCreate(&middle));
  CHECK(hipEventCreate(&stop));
  float long_ms = 0.0f, tiny_ms = 0.0f;
  for (long l = 0; l < launches; ++l) {
    CHECK(hipEventRecord(start));
    launch(work_for, 1, 64, x, rounds);
    CHECK(hipEventRecord(middle));
    launch(tiny, 1, 64, x);
    CHECK(hipEventRecord(stop));
    CHECK(hipEventSynchronize(stop));
    CHECK(hipEventElapsedTime(&long_ms, start, middle));
    CHECK(hipEventElapsedTime(&tiny_ms, middle, stop));
    EXPECT(tiny_ms > 0.0f && long_ms > tiny_ms);
  }
  std::printf("durations: long %.4f ms, tiny %.4f ms\n", long_ms, tiny_ms);
}
