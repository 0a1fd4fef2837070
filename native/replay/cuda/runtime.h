// NVIDIA's driver, opened while the program runs: it must not be mapped before the captured address ranges
// are held (see reserve.h), so nothing of it is linked.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "abi/cuda.h"
#include "replay/sim_api.h"

namespace kerncap::replay {

inline constexpr const char* kDefaultRuntime = "libcuda.so.1";
inline constexpr const char* kRuntimeName = "NVIDIA's driver";
inline constexpr const char* kGroupMemory = " bytes of shared memory a block; ";

struct Agent {
  abi::CUdevice handle = 0;
  std::string name;  // "sm_90"
  std::string isa;   // "nvptx64-nvidia-cuda--sm_90"
  std::string product;
  std::uint32_t lds_bytes = 0;      // shared memory a block can have at most
  std::uint32_t max_workgroup = 0;  // threads a block
  std::uint64_t cache_bytes = 0;    // L2
};

// Pinned host memory that one copy at a time goes through, with a stream of its own.
struct Stage {
  unsigned char* data = nullptr;
  abi::CUstream stream = nullptr;
};
inline constexpr std::uint64_t kStageBytes = 1u << 20;

class Runtime {
 public:
  // Opens `path` and initialises it. Throws ReplayError (device).
  explicit Runtime(const std::string& path);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // The GPU to replay on: number `index` of those that are there, or (-1) the first of `name`.
  // Throws ReplayError (device), naming the GPUs that are there.
  [[nodiscard]] const Agent& pick(const std::string& name, int index) const;

  // Makes the GPU's context this thread's; other threads get it with their first stage.
  void activate(const Agent& agent);

  // Throws ReplayError (device) unless `result` is success. `doing`: "creating a stream".
  void check(abi::CUresult result, const std::string& doing) const;
  [[nodiscard]] std::string status_text(abi::CUresult result) const;

  // A buffer in the GPU's own memory; 0: there is no room.
  [[nodiscard]] std::uint64_t allocate_on_device(const Agent& agent, std::uint64_t bytes) const;
  void free_on_device(std::uint64_t address) const;
  // Under way when it returns, in `stream`: before what is put into it next. finish_copies() waits.
  void copy_on_device(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) const;
  // Memory for kernel parameters, never freed.
  [[nodiscard]] void* kernarg_memory(const Agent& agent, std::uint64_t bytes) const;

  // A stage of this thread's until it is given back. What was sent through it before is done.
  [[nodiscard]] Stage* take_stage() const;
  // `busy`: copies are still under way in its stream.
  void give_back(Stage* stage, bool busy) const;
  // Waits for all that was started by copy_on_device and through busy stages. Any thread.
  void finish_copies() const;
  // Waits for what was started through busy stages only: they have streams of their own.
  void finish_stages() const;

  abi::CudaDriver cuda{};
  SimApi sim;        // what a simulator offers: nothing here
  std::string path;  // of the library that was opened
  abi::CUcontext context = nullptr;
  abi::CUstream stream = nullptr;  // of launches and of copies on the device

  [[nodiscard]] bool host_can_touch_device() const { return false; }

 private:
  void* library_ = nullptr;
  std::vector<Agent> gpus_;
  mutable std::mutex mutex_;  // guards the two that follow
  mutable std::deque<Stage*> free_stages_;
  mutable std::deque<std::unique_ptr<Stage>> stages_;
  mutable std::mutex finishing_;
  mutable std::atomic<bool> copying_{false};  // anything is under way
  mutable std::atomic<bool> sending_{false};  // through busy stages
};

}  // namespace kerncap::replay
