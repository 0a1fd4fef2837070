// A loaded code object: its HSA executable, its kernels and its variables.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hip/code_object.h"
#include "sim/hip/error.h"
#include "sim/hip/runtime.h"
#include "sim/hip/stream.h"

namespace kerncap::sim::hip {

struct Launch {
  std::uint32_t grid[3];  // workgroups
  std::uint32_t block[3];
  std::uint32_t dynamic_lds = 0;
};

class Function {
 public:
  Function(KernelLayout layout, std::uint64_t object, std::uint32_t group_bytes, std::uint32_t private_bytes)
      : layout_(std::move(layout)),
        object_(object),
        group_bytes_(group_bytes),
        private_bytes_(private_bytes) {}

  // Arguments are given one by one (`parameters`) or as one block of bytes (`block`), or not at all.
  hipError_t launch(Stream& stream, const Launch& how, void* const* parameters, std::string_view block) const;

 private:
  void fill_hidden(std::byte* kernarg, const HardwareQueue& queue, const Launch& how) const;

  KernelLayout layout_;
  std::uint64_t object_;
  std::uint32_t group_bytes_;
  std::uint32_t private_bytes_;
};

class Module {
 public:
  // `image` is an ELF code object or an offload bundle; bytes are copied. Null, with the reason in *error, if
  // it does not suit the device.
  static std::unique_ptr<Module> load(Gpu& gpu, std::string_view code_object, hipError_t* error);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Function* function(const std::string& name);  // null: no such kernel
  bool variable(const std::string& name, void** address, std::size_t* bytes);
  [[nodiscard]] Gpu& gpu() const { return *gpu_; }

 private:
  Module() = default;
  bool find_symbol(const std::string& name, abi::hsa_executable_symbol_t* symbol) const;

  Gpu* gpu_ = nullptr;
  std::string image_;
  abi::hsa_executable_t executable_{};
  std::map<std::string, KernelLayout> kernels_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Function>> functions_;
  std::vector<void*> variables_;  // entered in allocations()
};

}  // namespace kerncap::sim::hip
