// What the test programs share: errors that end the program, code objects beside it, and launches.
#pragma once

#include <hip/hip_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK(call) check((call), #call, __FILE__, __LINE__)

inline void check(hipError_t error, const char* what, const char* file, int line) {
  if (error == hipSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, hipGetErrorString(error));
  std::exit(2);
}

// Ends the program with status 1, and says why, unless `condition` holds.
#define EXPECT(condition)                                                            \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

inline std::string program_folder() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  const std::string self(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return self.substr(0, self.rfind('/'));
}

// The code object NAME.hsaco beside the program.
inline hipModule_t load(const char* name) {
  hipModule_t module = nullptr;
  CHECK(hipModuleLoad(&module, (program_folder() + "/" + name + ".hsaco").c_str()));
  return module;
}

inline hipFunction_t find(hipModule_t module, const char* name) {
  hipFunction_t function = nullptr;
  CHECK(hipModuleGetFunction(&function, module, name));
  return function;
}

// Arguments must have exactly the types of the kernel's parameters.
template <typename... Args>
void launch_on(hipStream_t stream, hipFunction_t function, unsigned blocks, unsigned threads, Args... args) {
  void* pointers[] = {&args..., nullptr};
  CHECK(hipModuleLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, pointers, nullptr));
}

template <typename... Args>
void launch(hipFunction_t function, unsigned blocks, unsigned threads, Args... args) {
  launch_on(nullptr, function, blocks, threads, args...);
}

template <typename T>
T* device_copy(const std::vector<T>& values) {
  void* memory = nullptr;
  CHECK(hipMalloc(&memory, values.size() * sizeof(T)));
  CHECK(hipMemcpy(memory, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
  return static_cast<T*>(memory);
}

template <typename T>
std::vector<T> host_copy(const T* memory, std::size_t count) {
  std::vector<T> values(count);
  CHECK(hipMemcpy(values.data(), memory, count * sizeof(T), hipMemcpyDeviceToHost));
  return values;
}

// The value of an option "--name VALUE", else `otherwise`.
inline long option(int argc, char** argv, const char* name, long otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string(argv[i]) == name) return std::strtol(argv[i + 1], nullptr, 0);
  }
  return otherwise;
}

inline bool flag(int argc, char** argv, const char* name) {
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == name) return true;
  }
  return false;
}
