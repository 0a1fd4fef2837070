// "Cubins" for the fake driver: each kernel runs its whole grid. VARIANT chooses what saxpy does.
#include <atomic>
#include <cstring>
#include <ctime>

namespace {
template <typename T>
T get(const void* parameters, int offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(parameters) + offset, sizeof value);
  return value;
}
}  // namespace

#define KERNEL(name, ...)                                                                                 \
  extern "C" __attribute__((visibility("default"))) const unsigned* name##_parameters() {                 \
    static const unsigned list[] = __VA_ARGS__;                                                           \
    return list;                                                                                          \
  }                                                                                                       \
  extern "C" __attribute__((visibility("default"))) int name(const unsigned* grid, const unsigned* block, \
                                                             void* p)

#ifndef VARIANT
#define VARIANT 0
#endif

extern "C" __attribute__((visibility("default"))) float scale[4];
float scale[4] = {1, 1, 1, 1};
extern "C" __attribute__((visibility("default"))) float* target;
float* target = nullptr;

KERNEL(saxpy, {4, 0, 8, 8, 8, 16, 4, 20, 4}) {
  auto* y = get<float*>(p, 0);
  const auto* x = get<const float*>(p, 8);
  const float a = get<float>(p, 16);
  const int n = get<int>(p, 20);
  (void)grid, (void)block;
  for (int i = 0; i < n; ++i) {
    if (VARIANT == 0) y[i] = a * x[i] + y[i];
    if (VARIANT == 1) y[i] = y[i] + x[i] * a;
    if (VARIANT == 2) y[i] = a * x[i];
    if (VARIANT == 3 && i == 0) y[n + 3] = 1;
    if (VARIANT == 3) y[i] = a * x[i] + y[i];
  }
  if (VARIANT == 4) return 1;  // touches what is not there
  if (VARIANT == 5)
    for (;;) std::atomic_signal_fence(std::memory_order_seq_cst);
  return 0;
}
// A kernel that an autotuner has in three configurations, of which the last sums otherwise; and what ptxas
// writes down of its parameters: a format, EIATTR_KPARAM_INFO, 12 bytes: an index, the parameter's number and
// offset, its size.
#define PARAMETER(number, offset, size) 0x000c1704, 0, (offset) << 16 | (number), (size) << 18
#define TUNED(name)                                                                            \
  [[gnu::used, gnu::section(".nv.info." #name)]] static const unsigned name##_info[] = {       \
      PARAMETER(0, 0, 8), PARAMETER(1, 8, 8), PARAMETER(2, 16, 4), PARAMETER(3, 20, 4)};       \
  KERNEL(name, {4, 0, 8, 8, 8, 16, 4, 20, 4}) {                                                \
    auto* y = get<float*>(p, 0);                                                               \
    const auto* x = get<const float*>(p, 8);                                                   \
    const float a = get<float>(p, 16);                                                         \
    const int n = get<int>(p, 20);                                                             \
    (void)grid, (void)block;                                                                   \
    for (int i = 0; i < n; ++i) y[i] = VARIANT == 2 ? a * (x[i] + 0.1f) - a * 0.1f : a * x[i]; \
    return 0;                                                                                  \
  }
TUNED(tuned)
TUNED(triton_poi_tuned)  // as Inductor names its own

// Rows of a table, scaled by a variable; a variable that points to memory, and one that counts.
extern "C" __attribute__((visibility("default"))) int counter;
int counter = 0;
KERNEL(of_table, {2, 0, 8, 8, 4}) {
  float** rows = get<float**>(p, 0);
  const int n = get<int>(p, 8);
  (void)grid, (void)block;
  for (int r = 0; r < 4; ++r)
    for (int i = 0; i < n; ++i) rows[r][i] = rows[r][i] * scale[r] + target[i];
  counter += 1;
  return 0;
}
namespace {
void spend(long ns) {
  timespec begin, now;
  ::clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    ::clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1'000'000'000 + now.tv_nsec - begin.tv_nsec < ns);
}
}  // namespace
// As good as nothing, but for variant 1.
KERNEL(nothing, {0}) {
  (void)grid, (void)block, (void)p;
  if (VARIANT == 1) spend(100'000);
  return 0;
}
KERNEL(nothing_else, {0}) {
  (void)grid, (void)block, (void)p;
  return 0;
}
KERNEL(lingers, {0}) {
  (void)grid, (void)block, (void)p;
  spend(500'000);
  return 0;
}
