// Which kernel a launch's function is, and what code the program has loaded.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "abi/cuda.h"
#include "abi/cuda_cupti.h"
#include "interpose/common/capture_requests.h"
#include "interpose/common/code_store.h"
#include "interpose/common/names.h"
#include "interpose/common/triton.h"
#include "interpose/cuda/cubin.h"
#include "live/live_file.h"
#include "snapshot/records.h"

namespace kerncap::interpose::cuda {

// A module as the driver loaded it, compiled from PTX where it was no cubin. Kept when it is unloaded.
struct Code {
  std::uint32_t id = 0;         // from 1, in order of loading
  std::uint32_t module_id = 0;  // CUPTI's
  abi::CUcontext context = nullptr;
  std::uint64_t hash = 0;
  std::uint64_t bytes = 0;
  std::shared_ptr<const Cubin> cubin;
  abi::CUmodule module = nullptr;  // null: not known
  bool unloaded = false;
};

// One kernel on one device; lives as long as the process.
struct Kernel {
  std::uint64_t id = 0;  // hash of symbol and code
  std::string symbol;
  std::string demangled;
  const Code* code = nullptr;  // null: not known
  std::string unknown_code;    // why
  std::uint32_t device = 0;
  live::KernelKind kind = live::KernelKind::cuda;
  int registers = 0, static_shared = 0, local_bytes = 0;
  std::vector<snapshot::CudaParameter> parameters;
  bool parameters_known = false;
  bool examined = false;  // what the driver tells of it is known
  std::uint32_t row = 0;
  std::shared_ptr<Calls> calls;          // of this id, on all devices
  std::atomic<std::uint64_t> judged{0};  // the capture request that it was held against
  std::atomic<Match> match{Match::none};
  std::atomic<bool> takes_long{false};  // to run, on average
};

class Kernels {
 public:
  Kernels(live::LiveFile& live, CodeStore& store) : live_(live), store_(store) {}

  void module_loaded(abi::CUcontext context, std::uint32_t module_id, const void* cubin, std::size_t bytes);
  void module_unloading(abi::CUcontext context, std::uint32_t module_id);
  // Around a driver call of this thread that may load code: what was loaded in between is `module`'s.
  static void begin_loading();
  void end_loading(abi::CUmodule module);

  void context_created(abi::CUcontext context);

  // The kernel that a launch of `function` (a CUfunction or a CUkernel) in `context` runs.
  Kernel* find(abi::CUfunction function, abi::CUcontext context, const char* symbol);
  // The same for a launch that this thread is about to make; null where the driver does not tell its name.
  Kernel* find(abi::CUfunction function);
  // For launches of which only CUPTI's record is known. A name means the kernel that had it first: launches
  // are watched from when names repeat.
  Kernel* find_by_name(const abi::CUpti_ActivityKernelPrefix& record);
  // Whether the program has loaded different code with kernels of one name.
  [[nodiscard]] bool names_repeat() const { return names_repeat_.load(std::memory_order_relaxed); }

  // What loaded_kernels() says changes with it.
  [[nodiscard]] std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  std::vector<Candidate> candidates() const;
  // The code whose variables a kernel of `context` may touch.
  std::vector<const Code*> loaded(abi::CUcontext context) const;

 private:
  Kernel* look_up(abi::CUfunction function, abi::CUcontext context, const char* symbol);
  Kernel* make(abi::CUfunction function, abi::CUcontext context, const char* symbol);
  Kernel* by_name(const abi::CUpti_ActivityKernelPrefix& record);
  const Code* code_of(abi::CUmodule module, abi::CUcontext context, const std::string& symbol,
                      std::string* why);
  Kernel* kernel(const std::string& symbol, const Code* code, std::uint32_t device, std::string why);
  void add_row(Kernel& kernel);
  // The content that each kernel's name was first seen in.
  std::unordered_map<std::string, std::uint64_t> first_code_;

  live::LiveFile& live_;
  CodeStore& store_;
  mutable std::shared_mutex mutex_;
  std::atomic<std::uint64_t> generation_{1};
  std::atomic<bool> names_repeat_{false};
  std::atomic<std::uint64_t> handles_{1};         // changes when a handle may mean another kernel
  std::atomic<std::uint64_t> names_{1};           // and when a name may
  unsigned contexts_ = 0;                         // that there ever were
  std::atomic<abi::CUcontext> context_{nullptr};  // if there was only one
  std::vector<std::unique_ptr<Code>> codes_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::unique_ptr<Kernel>> kernels_;  // by id and device
  struct Handle {
    abi::CUfunction function;
    abi::CUcontext context;
    bool operator==(const Handle&) const = default;
  };
  struct HandleHash {
    std::size_t operator()(const Handle& h) const {
      return std::hash<const void*>()(h.function) ^ std::hash<const void*>()(h.context) << 1;
    }
  };
  std::unordered_map<Handle, Kernel*, HandleHash> by_handle_;
  std::map<std::pair<std::string, std::uint32_t>, Kernel*> by_name_;  // what find_by_name() found
};

}  // namespace kerncap::interpose::cuda
