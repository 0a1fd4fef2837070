// Single-source programs: what clang's host side registers before main, and the launches and symbols that
// refer to it.
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sim/hip/error.h"
#include "sim/hip/module.h"
#include "sim/hip/runtime.h"
#include "sim/hip/stream.h"

using namespace kerncap::sim::hip;

namespace {

constexpr std::uint32_t kWrapperMagic = 0x48495046;  // "HIPF"

struct FatBinaryWrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* binary;
  void* unused;
};

// One translation unit's device code; loaded at its first use, since registering happens before main.
struct FatBinary {
  const void* image = nullptr;
  std::map<int, std::unique_ptr<Module>> modules;  // by device
};

struct Entry {
  FatBinary* binary = nullptr;
  std::string name;
};

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<FatBinary>> binaries;
  std::map<const void*, Entry> functions;  // by the address of the host stub
  std::map<const void*, Entry> variables;  // by the address of the host shadow
};

// Never destroyed: units unregister from their own destructors.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  hipStream_t stream;
};

thread_local std::vector<Configuration> configurations;

// The registry's mutex is held.
Module* loaded(FatBinary& binary, Gpu& gpu, hipError_t* error) {
  auto& module = binary.modules[gpu.ordinal];
  if (module == nullptr) module = Module::load(gpu, find_code_object(binary.image, gpu.arch), error);
  return module.get();
}

hipError_t find_variable(const void* symbol, void** address, std::size_t* bytes) {
  Gpu* gpu = current_gpu();
  if (gpu == nullptr) return hipErrorNoDevice;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto entry = all.variables.find(symbol);
  if (entry == all.variables.end()) return hipErrorInvalidSymbol;
  hipError_t error = hipErrorInvalidSymbol;
  Module* module = loaded(*entry->second.binary, *gpu, &error);
  if (module == nullptr) return error;
  return module->variable(entry->second.name, address, bytes) ? hipSuccess : hipErrorInvalidSymbol;
}

// Where `bytes` bytes of a variable begin, `offset` into it; they must lie in it.
hipError_t find_part(const void* symbol, std::size_t bytes, std::size_t offset, char** place) {
  void* address = nullptr;
  std::size_t size = 0;
  if (const hipError_t error = find_variable(symbol, &address, &size); error != hipSuccess) return error;
  if (offset > size || bytes > size - offset) return hipErrorInvalidValue;
  *place = static_cast<char*>(address) + offset;
  return hipSuccess;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void** __hipRegisterFatBinary(const void* data) {
  const auto* wrapper = static_cast<const FatBinaryWrapper*>(data);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  auto binary = std::make_unique<FatBinary>();
  if (wrapper != nullptr && wrapper->magic == kWrapperMagic) binary->image = wrapper->binary;
  all.binaries.push_back(std::move(binary));
  return reinterpret_cast<void**>(all.binaries.back().get());
}

void __hipUnregisterFatBinary(void** handle) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto* binary = reinterpret_cast<FatBinary*>(handle);
  std::erase_if(all.functions, [binary](const auto& entry) { return entry.second.binary == binary; });
  std::erase_if(all.variables, [binary](const auto& entry) { return entry.second.binary == binary; });
  // The modules stay: kernels of theirs may still be running while the program ends.
}

void __hipRegisterFunction(void** handle, const void* host_function, char* /*device_function*/,
                           const char* device_name, unsigned int /*thread_limit*/, void* /*thread_id*/,
                           void* /*block_id*/, dim3* /*block*/, dim3* /*grid*/, int* /*warp_size*/) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.functions[host_function] = {reinterpret_cast<FatBinary*>(handle), device_name};
}

void __hipRegisterVar(void** handle, void* host_variable, char* /*host_name*/, char* device_name,
                      int /*external*/, std::size_t /*bytes*/, int /*constant*/, int /*global*/) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.variables[host_variable] = {reinterpret_cast<FatBinary*>(handle), device_name};
}

}  // extern "C"
#pragma GCC visibility pop

hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, hipStream_t stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return hipSuccess;
}

hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, hipStream_t* stream) {
  if (configurations.empty()) return record(hipErrorInvalidConfiguration);
  const Configuration& last = configurations.back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *stream = last.stream;
  configurations.pop_back();
  return hipSuccess;
}

hipError_t hipLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                           hipStream_t stream) {
  Stream* where = find_stream(stream);
  if (where == nullptr) return record(current_gpu() == nullptr ? hipErrorNoDevice : hipErrorInvalidHandle);
  Function* kernel = nullptr;
  {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    const auto entry = all.functions.find(function);
    if (entry == all.functions.end()) return record(hipErrorInvalidDeviceFunction);
    hipError_t error = hipErrorInvalidDeviceFunction;
    Module* module = loaded(*entry->second.binary, where->gpu(), &error);
    if (module == nullptr) return record(error);
    kernel = module->function(entry->second.name);
  }
  if (kernel == nullptr) return record(hipErrorInvalidDeviceFunction);
  const Launch how{
      {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, static_cast<std::uint32_t>(shared_bytes)};
  return record(kernel->launch(*where, how, arguments, {}));
}

hipError_t hipGetSymbolAddress(void** pointer, const void* symbol) {
  if (pointer == nullptr) return record(hipErrorInvalidValue);
  return record(find_variable(symbol, pointer, nullptr));
}

hipError_t hipGetSymbolSize(size_t* bytes, const void* symbol) {
  if (bytes == nullptr) return record(hipErrorInvalidValue);
  return record(find_variable(symbol, nullptr, bytes));
}

hipError_t hipMemcpyToSymbol(const void* symbol, const void* src, size_t bytes, size_t offset,
                             hipMemcpyKind kind) {
  char* place = nullptr;
  if (const hipError_t error = find_part(symbol, bytes, offset, &place); error != hipSuccess)
    return record(error);
  return hipMemcpy(place, src, bytes, kind);
}

hipError_t hipMemcpyFromSymbol(void* dst, const void* symbol, size_t bytes, size_t offset,
                               hipMemcpyKind kind) {
  char* place = nullptr;
  if (const hipError_t error = find_part(symbol, bytes, offset, &place); error != hipSuccess)
    return record(error);
  return hipMemcpy(dst, place, bytes, kind);
}
