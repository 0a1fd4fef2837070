#include "sim/hip/signal.h"

#include <mutex>
#include <vector>

#include "abi/hsa_functions.h"

namespace kerncap::sim::hip {
namespace {

constexpr std::size_t kMaxPooled = 1024;

struct Pool {
  std::mutex mutex;
  std::vector<abi::hsa_signal_t> free;
};

// Never destroyed: streams and events may outlive the library's static objects.
Pool& pool() {
  static Pool* instance = new Pool;
  return *instance;
}

}  // namespace

Signal::~Signal() {
  Pool& p = pool();
  {
    const std::lock_guard lock(p.mutex);
    if (p.free.size() < kMaxPooled) {
      p.free.push_back(handle_);
      return;
    }
  }
  abi::hsa_signal_destroy(handle_);
}

bool Signal::done() const { return abi::hsa_signal_load_scacquire(handle_) <= 0; }

void Signal::complete() const { abi::hsa_signal_store_screlease(handle_, 0); }

void Signal::wait() const {
  constexpr std::uint64_t kTicks = 100'000'000;  // a hint only: the loop decides
  while (abi::hsa_signal_wait_scacquire(handle_, abi::HSA_SIGNAL_CONDITION_LT, 1, kTicks,
                                        abi::HSA_WAIT_STATE_BLOCKED) > 0) {
  }
}

SignalRef make_signal() {
  Pool& p = pool();
  abi::hsa_signal_t handle{};
  {
    const std::lock_guard lock(p.mutex);
    if (!p.free.empty()) {
      handle = p.free.back();
      p.free.pop_back();
    }
  }
  if (handle.handle != 0) {
    abi::hsa_signal_store_relaxed(handle, 1);
  } else if (abi::hsa_signal_create(1, 0, nullptr, &handle) != abi::HSA_STATUS_SUCCESS) {
    return nullptr;
  }
  return std::make_shared<Signal>(handle);
}

}  // namespace kerncap::sim::hip
