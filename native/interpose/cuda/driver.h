// The driver and CUPTI, as the interposer calls them.
#pragma once

#include <cstdint>
#include <string>

#include "abi/cuda.h"
#include "abi/cuda_cupti.h"
#include "abi/cuda_graph.h"

namespace kerncap::interpose::cuda {

const abi::CudaDriver& driver();
const abi::Cupti& cupti();
// Usable where follows_graphs() says so: the driver may be too old.
const abi::CudaGraphs& graph_driver();
bool follows_graphs();

// Finds both; false, and why, where that is not possible.
bool load_libraries(std::string* why);
// "/usr/lib/x86_64-linux-gnu/libcuda.so.1 13.0"
std::string driver_text();

// The stream that a call means which names `stream`; `per_thread`: the call's form ends in _ptsz.
inline abi::CUstream stream_handle(abi::CUstream stream, bool per_thread) {
  // CU_STREAM_PER_THREAD is the handle 2.
  return stream == nullptr && per_thread ? reinterpret_cast<abi::CUstream>(std::uintptr_t{2}) : stream;
}

// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
std::string error_text(abi::CUresult error);

// Set while this thread makes driver calls of kerncap's own: their callbacks are not the program's.
class OwnCalls {
 public:
  OwnCalls();
  ~OwnCalls();
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;
  static bool active();

 private:
  bool before_;
  abi::CUstreamCaptureMode mode_ = abi::CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace kerncap::interpose::cuda
