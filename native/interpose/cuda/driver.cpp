#include "interpose/cuda/driver.h"

#include <dlfcn.h>
#include <link.h>

#include "abi/cuda_load.h"
#include "interpose/cuda/cupti_library.h"

namespace kerncap::interpose::cuda {
namespace {

abi::CudaDriver driver_functions;
abi::Cupti cupti_functions;
abi::CudaGraphs graph_functions;
bool has_graph_functions = false;
std::string driver_path;
thread_local bool own_calls = false;

}  // namespace

const abi::CudaDriver& driver() { return driver_functions; }
const abi::Cupti& cupti() { return cupti_functions; }
const abi::CudaGraphs& graph_driver() { return graph_functions; }
bool follows_graphs() { return has_graph_functions; }

bool load_libraries(std::string* why) {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *why = ::dlerror();
    return false;
  }
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) driver_path = map->l_name;
  if (const char* missing = abi::load_functions(library, driver_functions)) {
    *why = driver_path + " has no " + missing + "; kerncap needs a driver for CUDA 11.8 or later";
    return false;
  }
  has_graph_functions = abi::load_functions(library, graph_functions) == nullptr;
  library = open_cupti(why);
  if (library == nullptr) return false;
  if (const char* missing = abi::load_functions(library, cupti_functions)) {
    *why = std::string("libcupti has no ") + missing;
    return false;
  }
  return true;
}

std::string driver_text() {
  int version = 0;
  driver().cuDriverGetVersion(&version);
  return driver_path + " " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string error_text(abi::CUresult error) {
  const char *name = nullptr, *text = nullptr;
  driver().cuGetErrorName(error, &name);
  driver().cuGetErrorString(error, &text);
  std::string all = name != nullptr ? name : "CUDA error " + std::to_string(error);
  if (text != nullptr) all.append(" (").append(text).append(")");
  return all;
}

// While some thread records a stream into a graph, calls that could disturb it fail, and spoil the recording,
// unless the calling thread is in relaxed mode.
OwnCalls::OwnCalls() : before_(own_calls) {
  own_calls = true;
  driver().cuThreadExchangeStreamCaptureMode(&mode_);
}
OwnCalls::~OwnCalls() {
  driver().cuThreadExchangeStreamCaptureMode(&mode_);
  own_calls = before_;
}
bool OwnCalls::active() { return own_calls; }

}  // namespace kerncap::interpose::cuda
