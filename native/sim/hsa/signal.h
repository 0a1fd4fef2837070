// Signals: the 64-bit values that everything in HSA waits on.
//
// Host code changes a signal by the functions here, which wake those who wait. A kernel changes the value in
// memory and cannot wake anyone, so every wait also looks again after a bounded time.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "abi/hsa.h"

namespace kerncap::sim::rt {

class Queue;

// amd comes first: the handle is its address, and kernels and HIP look into it.
struct Signal {
  abi::amd_signal_t amd;
  std::atomic<std::uint32_t> references;     // the creator's, and one for each user inside the runtime
  std::atomic<std::uint32_t> waiters;        // threads asleep on `sequence`
  std::atomic<std::uint32_t> multi_waiters;  // threads asleep on several signals, this one among them
  std::atomic<std::uint32_t> sequence;       // futex word, changes with the value while someone waits
  Queue* doorbell_of;                        // set for doorbells: a store rings the queue
  std::uint64_t reserved[4];

  static Signal* from(abi::hsa_signal_t handle) { return reinterpret_cast<Signal*>(handle.handle); }
  [[nodiscard]] abi::hsa_signal_t handle() const { return {reinterpret_cast<std::uint64_t>(this)}; }

  [[nodiscard]] std::int64_t load() const { return __atomic_load_n(&amd.value, __ATOMIC_SEQ_CST); }
  void store(std::int64_t value);
  void store_silently(std::int64_t value) { __atomic_store_n(&amd.value, value, __ATOMIC_SEQ_CST); }
  void subtract(std::int64_t value);
  // Wakes whoever waits; for code that changed the value by other means.
  void notify();
};
static_assert(sizeof(Signal) == 128);

// Signal memory comes in slabs, each of which every GPU may touch as one allocation.
class SignalPool {
 public:
  Signal* create(std::int64_t initial, abi::amd_signal_kind_t kind = abi::AMD_SIGNAL_KIND_USER);
  void retain(Signal* signal) { signal->references.fetch_add(1, std::memory_order_relaxed); }
  void release(Signal* signal);

 private:
  std::mutex mutex_;
  std::vector<Signal*> free_;
};

// A user of a signal inside the runtime, which outlives hsa_signal_destroy. Empty for a null handle.
class SignalRef {
 public:
  SignalRef() = default;
  SignalRef(SignalPool* pool, abi::hsa_signal_t handle);
  SignalRef(SignalRef&& other) noexcept : pool_(other.pool_), signal_(other.signal_) {
    other.signal_ = nullptr;
  }
  SignalRef& operator=(SignalRef&& other) noexcept;
  SignalRef(const SignalRef&) = delete;
  SignalRef& operator=(const SignalRef&) = delete;
  ~SignalRef();

  [[nodiscard]] Signal* get() const { return signal_; }
  Signal* operator->() const { return signal_; }
  explicit operator bool() const { return signal_ != nullptr; }

 private:
  SignalPool* pool_ = nullptr;
  Signal* signal_ = nullptr;
};

bool condition_holds(abi::hsa_signal_condition_t condition, std::int64_t value, std::int64_t compare);

struct SignalCondition {
  Signal* signal;
  abi::hsa_signal_condition_t condition;
  std::int64_t compare;

  [[nodiscard]] bool holds() const { return condition_holds(condition, signal->load(), compare); }
};

// Returns the value that met the condition, or the last one seen after `timeout_ns` (UINT64_MAX: no limit).
std::int64_t wait_for(Signal* signal, abi::hsa_signal_condition_t condition, std::int64_t compare,
                      std::uint64_t timeout_ns);

// A thread that waits for several signals at once, and may be woken for other reasons.
// Usage: ticket = MultiWait::ticket(); look at everything; MultiWait::sleep(ticket, signals, timeout).
class MultiWait {
 public:
  static std::uint32_t ticket();
  // Sleeps until one of the signals changes or wake_all() is called after `ticket` was drawn, or the time is
  // up. The signals must stay alive. Returns at once when `still_waiting` finds a condition met.
  static void sleep(std::uint32_t ticket, const std::vector<SignalCondition>& conditions,
                    std::uint64_t timeout_ns);
  static void wake_all();
};

// How long a wait sleeps before it looks again at a value that a kernel may have changed: short while a
// dispatch runs.
class KernelActivity {
 public:
  KernelActivity();
  ~KernelActivity();
  static std::uint64_t longest_sleep_ns();
};

}  // namespace kerncap::sim::rt
