// What the decoder needs of HIP: memory that frees itself, kernels by name, and errors that end the program.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <string>
#include <vector>

#define HIP_CHECK(call) check_hip((call), #call)

void check_hip(hipError_t error, const char* what);

template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t count) : count_(count) {
    void* memory = nullptr;
    HIP_CHECK(hipMalloc(&memory, count * sizeof(T)));
    data_ = static_cast<T*>(memory);
  }
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) {
    HIP_CHECK(hipMemcpy(data_, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
  }
  Buffer(Buffer&& other) noexcept : data_(other.data_), count_(other.count_) { other.data_ = nullptr; }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) (void)hipFree(data_);
  }

  T* data() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    HIP_CHECK(hipMemcpy(values.data(), data_, count_ * sizeof(T), hipMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

// A code object that stays loaded to the program's end.
class Module {
 public:
  explicit Module(const std::string& path);
  hipFunction_t function(const char* name) const;

 private:
  hipModule_t module_ = nullptr;
};

struct Size {
  unsigned x = 1, y = 1;
};

class Kernel {
 public:
  Kernel(const Module& module, const char* name) : function_(module.function(name)) {}

  // Arguments must have exactly the types of the kernel's parameters.
  template <typename... Args>
  void operator()(Size grid, unsigned block, unsigned shared_bytes, Args... args) const {
    void* pointers[] = {&args...};
    HIP_CHECK(hipModuleLaunchKernel(function_, grid.x, grid.y, 1, block, 1, 1, shared_bytes, nullptr,
                                    pointers, nullptr));
    ++launches;
  }

  static long launches;

 private:
  hipFunction_t function_;
};
