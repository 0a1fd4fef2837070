// Modules: code objects that the program loads itself, and launches of their kernels.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "sim/hip/error.h"
#include "sim/hip/module.h"
#include "sim/hip/runtime.h"
#include "sim/hip/stream.h"

using namespace kerncap::sim::hip;

namespace {

Module* as_module(hipModule_t module) { return reinterpret_cast<Module*>(module); }

hipError_t load(hipModule_t* module, std::string_view code_object, Gpu& gpu) {
  hipError_t error = hipSuccess;
  auto made = Module::load(gpu, code_object, &error);
  if (made == nullptr) return error;
  *module = reinterpret_cast<hipModule_t>(made.release());  // hipModuleUnload owns it
  return hipSuccess;
}

// The `extra` form of arguments: pairs of a tag and a value, up to the end tag.
bool read_extra(void** extra, std::string_view* block) {
  const void* base = nullptr;
  std::size_t bytes = 0;
  while (*extra != HIP_LAUNCH_PARAM_END) {
    if (*extra == HIP_LAUNCH_PARAM_BUFFER_POINTER) {
      base = extra[1];
    } else if (*extra == HIP_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<const std::size_t*>(extra[1]);
    } else {
      return false;
    }
    extra += 2;
  }
  if (base == nullptr && bytes != 0) return false;
  *block = std::string_view(static_cast<const char*>(base), bytes);
  return true;
}

}  // namespace

hipError_t hipModuleLoad(hipModule_t* module, const char* path) {
  if (module == nullptr || path == nullptr) return record(hipErrorInvalidValue);
  Gpu* gpu = current_gpu();
  if (gpu == nullptr) return record(hipErrorNoDevice);
  std::ifstream file(path, std::ios::binary);
  if (!file) return record(hipErrorFileNotFound);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return record(load(module, find_code_object(std::string_view(bytes), gpu->arch), *gpu));
}

hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  if (module == nullptr || image == nullptr) return record(hipErrorInvalidValue);
  Gpu* gpu = current_gpu();
  if (gpu == nullptr) return record(hipErrorNoDevice);
  return record(load(module, find_code_object(image, gpu->arch), *gpu));
}

hipError_t hipModuleUnload(hipModule_t module) {
  if (module == nullptr) return record(hipErrorInvalidHandle);
  const std::unique_ptr<Module> owned(as_module(module));
  return record(synchronize(owned->gpu()));
}

hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  if (function == nullptr || name == nullptr) return record(hipErrorInvalidValue);
  if (module == nullptr) return record(hipErrorInvalidHandle);
  Function* found = as_module(module)->function(name);
  if (found == nullptr) return record(hipErrorNotFound);
  *function = reinterpret_cast<hipFunction_t>(found);
  return hipSuccess;
}

hipError_t hipModuleGetGlobal(hipDeviceptr_t* pointer, size_t* bytes, hipModule_t module, const char* name) {
  if (name == nullptr) return record(hipErrorInvalidValue);
  if (module == nullptr) return record(hipErrorInvalidHandle);
  return record(as_module(module)->variable(name, pointer, bytes) ? hipSuccess : hipErrorNotFound);
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                 unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                 unsigned int block_z, unsigned int shared_bytes, hipStream_t stream,
                                 void** parameters, void** extra) {
  if (function == nullptr) return record(hipErrorInvalidHandle);
  if (parameters != nullptr && extra != nullptr) return record(hipErrorInvalidValue);
  Stream* where = find_stream(stream);
  if (where == nullptr) return record(current_gpu() == nullptr ? hipErrorNoDevice : hipErrorInvalidHandle);
  std::string_view block;
  if (extra != nullptr && !read_extra(extra, &block)) return record(hipErrorInvalidValue);
  const Launch how{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  return record(reinterpret_cast<Function*>(function)->launch(*where, how, parameters, block));
}
