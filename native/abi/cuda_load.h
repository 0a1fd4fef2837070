// Finding the functions of libcuda and libcupti by name.
#pragma once

#include <dlfcn.h>

#include "abi/cuda.h"
#include "abi/cuda_cupti.h"
#include "abi/cuda_graph.h"

namespace kerncap::abi {

// What the library does not have stays null. Returns the name of the first that is needed and missing; null:
// all are there.
inline const char* load_functions(void* library, CudaDriver& driver) {
  const char* missing = nullptr;
#define KERNCAP_CUDA_FIND(name, symbol, parameters) \
  driver.name = reinterpret_cast<decltype(driver.name)>(::dlsym(library, symbol));
#define KERNCAP_CUDA_NEED(name, symbol, parameters) \
  KERNCAP_CUDA_FIND(name, symbol, parameters)       \
  if (driver.name == nullptr && missing == nullptr) missing = symbol;
  KERNCAP_CUDA_FUNCTIONS(KERNCAP_CUDA_NEED)
  KERNCAP_CUDA_LATER_FUNCTIONS(KERNCAP_CUDA_FIND)
#undef KERNCAP_CUDA_NEED
#undef KERNCAP_CUDA_FIND
  return missing;
}

// Of calls that change nodes any may be missing.
inline const char* load_functions(void* library, CudaGraphs& graphs) {
  const char* missing = nullptr;
#define KERNCAP_CUDA_FIND(name, symbol, parameters)                                \
  graphs.name = reinterpret_cast<decltype(graphs.name)>(::dlsym(library, symbol)); \
  if (graphs.name == nullptr && missing == nullptr) missing = symbol;
#define KERNCAP_CUDA_CHANGE(call, name, symbol) \
  graphs.name = reinterpret_cast<decltype(graphs.name)>(::dlsym(library, symbol));
  KERNCAP_CUDA_GRAPH_FUNCTIONS(KERNCAP_CUDA_FIND)
  KERNCAP_CUDA_NODE_CHANGES(KERNCAP_CUDA_CHANGE)
#undef KERNCAP_CUDA_CHANGE
#undef KERNCAP_CUDA_FIND
  return missing;
}

inline const char* load_functions(void* library, Cupti& cupti) {
  const char* missing = nullptr;
#define KERNCAP_CUPTI_FIND(name, parameters)                                    \
  cupti.name = reinterpret_cast<decltype(cupti.name)>(::dlsym(library, #name)); \
  if (cupti.name == nullptr && missing == nullptr) missing = #name;
  KERNCAP_CUPTI_FUNCTIONS(KERNCAP_CUPTI_FIND)
#undef KERNCAP_CUPTI_FIND
  return missing;
}

}  // namespace kerncap::abi
