#include "sim/hip/module.h"

#include "abi/hsa_functions.h"
#include "sim/hip/allocations.h"

namespace kerncap::sim::hip {
namespace {

// For kernels whose stack is not known when compiled (recursion, calls through pointers): HIP's default.
constexpr std::uint32_t kDynamicStack = 1024;

template <typename T>
bool symbol_info(abi::hsa_executable_symbol_t symbol, abi::hsa_executable_symbol_info_t what, T* out) {
  return abi::hsa_executable_symbol_get_info(symbol, what, out) == abi::HSA_STATUS_SUCCESS;
}

}  // namespace

std::unique_ptr<Module> Module::load(Gpu& gpu, std::string_view code_object, hipError_t* error) {
  *error = hipErrorNoBinaryForGpu;
  if (code_object.empty()) return nullptr;
  *error = hipErrorInvalidImage;
  auto kernels = read_kernels(code_object);
  if (!kernels) return nullptr;

  std::unique_ptr<Module> made(new Module);
  made->gpu_ = &gpu;
  made->image_ = code_object;
  made->kernels_ = std::move(*kernels);

  abi::hsa_code_object_reader_t reader{};
  if (abi::hsa_code_object_reader_create_from_memory(made->image_.data(), made->image_.size(), &reader) !=
      abi::HSA_STATUS_SUCCESS) {
    return nullptr;
  }
  abi::hsa_status_t status = abi::hsa_executable_create_alt(
      abi::HSA_PROFILE_FULL, abi::HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr, &made->executable_);
  if (status == abi::HSA_STATUS_SUCCESS) {
    status =
        abi::hsa_executable_load_agent_code_object(made->executable_, gpu.agent, reader, nullptr, nullptr);
  }
  if (status == abi::HSA_STATUS_SUCCESS) status = abi::hsa_executable_freeze(made->executable_, nullptr);
  abi::hsa_code_object_reader_destroy(reader);
  if (status != abi::HSA_STATUS_SUCCESS) {
    // An object for another device is refused by the loader under one of these names.
    if (status == abi::HSA_STATUS_ERROR_INVALID_ISA_NAME || status == abi::HSA_STATUS_ERROR_INVALID_ISA ||
        status == abi::HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS) {
      *error = hipErrorNoBinaryForGpu;
    }
    return nullptr;
  }
  *error = hipSuccess;
  return made;
}

Module::~Module() {
  for (void* address : variables_) allocations().take(address, Allocation::Kind::variable);
  if (executable_.handle != 0) abi::hsa_executable_destroy(executable_);
}

bool Module::find_symbol(const std::string& name, abi::hsa_executable_symbol_t* symbol) const {
  return abi::hsa_executable_get_symbol_by_name(executable_, name.c_str(), &gpu_->agent, symbol) ==
         abi::HSA_STATUS_SUCCESS;
}

Function* Module::function(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (const auto known = functions_.find(name); known != functions_.end()) return known->second.get();
  const auto layout = kernels_.find(name);
  abi::hsa_executable_symbol_t symbol{};
  if (layout == kernels_.end() || !find_symbol(layout->second.descriptor, &symbol)) return nullptr;
  std::uint64_t object = 0;
  std::uint32_t group = 0;
  std::uint32_t stack = 0;
  bool dynamic_stack = false;
  if (!symbol_info(symbol, abi::HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object) ||
      !symbol_info(symbol, abi::HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &group) ||
      !symbol_info(symbol, abi::HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &stack)) {
    return nullptr;
  }
  symbol_info(symbol, abi::HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK, &dynamic_stack);
  if (dynamic_stack) stack = std::max(stack, kDynamicStack);
  auto& entry = functions_[name];
  entry = std::make_unique<Function>(layout->second, object, group, stack);
  return entry.get();
}

bool Module::variable(const std::string& name, void** address, std::size_t* bytes) {
  abi::hsa_executable_symbol_t symbol{};
  abi::hsa_symbol_kind_t kind = abi::HSA_SYMBOL_KIND_KERNEL;
  std::uint64_t at = 0;
  std::uint32_t size = 0;
  if (!find_symbol(name, &symbol) || !symbol_info(symbol, abi::HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind) ||
      kind != abi::HSA_SYMBOL_KIND_VARIABLE ||
      !symbol_info(symbol, abi::HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &at) ||
      !symbol_info(symbol, abi::HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE, &size)) {
    return false;
  }
  void* pointer = reinterpret_cast<void*>(at);
  if (!allocations().find(pointer)) {
    allocations().add({.kind = Allocation::Kind::variable,
                       .base = pointer,
                       .device_base = pointer,
                       .bytes = size,
                       .device = gpu_->ordinal});
    const std::lock_guard lock(mutex_);
    variables_.push_back(pointer);
  }
  if (address != nullptr) *address = pointer;
  if (bytes != nullptr) *bytes = size;
  return true;
}

}  // namespace kerncap::sim::hip
