// What the parts of the fake driver share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "abi/cuda.h"
#include "abi/cuda_cupti.h"
#include "abi/cuda_graph.h"

using namespace kerncap::abi;  // NOLINT

#define EXPORT extern "C" __attribute__((visibility("default"), used))

// An exported function that begins as driver 580's launch functions do, and then runs NAME_body. With
// FAKE_UNHOOKABLE it begins with a jump, as one does that another tool has hooked.
#ifdef FAKE_UNHOOKABLE
#define BEGINNING ""
#else
#define BEGINNING                                                                                      \
  "push %rbp\n mov %rsp, %rbp\n push %r12\n sub $8, %rsp\n cmpl $0x320f1cba, fake_traced_flag(%rip)\n" \
  "je 1f\n 1: add $8, %rsp\n pop %r12\n pop %rbp\n"
#endif
#define LAUNCHER(name)                                                                             \
  asm(".text\n .balign 16\n .globl " #name "\n .type " #name ", @function\n" #name ":\n" BEGINNING \
      "jmp " #name "_body\n .size " #name ", . - " #name "\n");                                    \
  extern "C" __attribute__((visibility("hidden"), used)) CUresult name##_body

struct kerncap::abi::CUmod_st {
  void* library = nullptr;
  std::uint32_t id = 0;
  std::string untold;  // its image, while CUPTI has not been told of it
};
struct kerncap::abi::CUfunc_st {
  CUmodule module = nullptr;
  std::string name;
  int (*entry)(const unsigned* grid, const unsigned* block, void* parameters) = nullptr;
  const unsigned* parameters = nullptr;  // count, then offset and size of each
};
struct kerncap::abi::CUctx_st {
  int device = 0;
};
struct kerncap::abi::CUstream_st {
  CUgraph recorded = nullptr;  // the graph that what is submitted becomes part of, in place of running
  CUgraphNode last = nullptr;
};

namespace fake {

std::uint32_t next_correlation();

// A driver call as CUPTI tells of it.
CUresult traced_call(CUpti_driver_api_trace_cbid id, const void* params, const char* symbol,
                     std::uint32_t correlation, const std::function<CUresult()>& body);
template <typename Params>
CUresult traced(CUpti_driver_api_trace_cbid id, const Params& params, const char* symbol,
                std::uint32_t correlation, const std::function<CUresult()>& body) {
  return traced_call(id, &params, symbol, correlation, body);
}

// Work for the device; not 0: it faulted. Its kernels have records if CUPTI is to make some now.
void submit(std::function<int()> work);

struct KernelRun {
  CUfunction function = nullptr;
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned shared = 0;
  std::vector<unsigned char> packed;  // its parameters
};
std::vector<unsigned char> pack(CUfunction f, void** parameters, void** extra);
// On the device; CUPTI gets a record of it.
int run_kernel(const KernelRun& run, std::uint32_t correlation, std::uint64_t graph_node);

bool stream_records(CUstream stream);
CUresult record_kernel(CUstream stream, const KernelRun& run);

}  // namespace fake
