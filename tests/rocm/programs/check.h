// What the programs share. Each counts its own launches of its own kernels, says so, and checks its results on the
// host: the last line is `ok`.
#pragma once
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#define HIP(call)                                                                             \
  do {                                                                                        \
    const hipError_t status = (call);                                                         \
    if (status != hipSuccess) {                                                               \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorString(status)); \
      std::exit(2);                                                                           \
    }                                                                                         \
  } while (false)

#define EXPECT(condition)                                                               \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      std::fprintf(stderr, "%s:%d: wrong: %s\n", __FILE__, __LINE__, #condition);       \
      std::exit(1);                                                                     \
    }                                                                                   \
  } while (false)

inline std::map<std::string, long>& launches() {
  static std::map<std::string, long> counts;
  return counts;
}

inline void launched(const char* kernel, long times = 1) { launches()[kernel] += times; }

inline int finish() {
  for (const auto& [kernel, times] : launches()) std::printf("launched %s %ld\n", kernel.c_str(), times);
  std::printf("ok\n");
  return 0;
}

template <typename T>
T* device_array(const std::vector<T>& values) {
  T* pointer = nullptr;
  HIP(hipMalloc(&pointer, values.size() * sizeof(T)));
  HIP(hipMemcpy(pointer, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
  return pointer;
}

template <typename T>
std::vector<T> host_vector(const T* pointer, std::size_t count) {
  std::vector<T> values(count);
  HIP(hipMemcpy(values.data(), pointer, count * sizeof(T), hipMemcpyDeviceToHost));
  return values;
}
