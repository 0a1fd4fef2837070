#include "sim/hsa/signal.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <new>

#include "sim/hsa/futex.h"
#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

constexpr std::size_t kSlabBytes = 64 << 10;

std::atomic<std::uint32_t> g_multi_sequence{0};
std::atomic<std::uint32_t> g_running_kernels{0};

std::uint64_t host_now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

}  // namespace

void Signal::notify() {
  // Pairs with the waiter's increment: either it sees the new value, or we see the waiter.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiters.load(std::memory_order_seq_cst) != 0) {
    sequence.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(&sequence);
  }
  if (multi_waiters.load(std::memory_order_seq_cst) != 0) MultiWait::wake_all();
}

void Signal::store(std::int64_t value) {
  __atomic_store_n(&amd.value, value, __ATOMIC_SEQ_CST);
  notify();
}

void Signal::subtract(std::int64_t value) {
  __atomic_fetch_sub(&amd.value, value, __ATOMIC_SEQ_CST);
  notify();
}

Signal* SignalPool::create(std::int64_t initial, abi::amd_signal_kind_t kind) {
  Signal* signal = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (free_.empty()) {
      void* slab = mmap(nullptr, kSlabBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (slab == MAP_FAILED) return nullptr;
      Runtime::get()->share_with_gpus(reinterpret_cast<std::uint64_t>(slab), kSlabBytes, "signal");
      for (std::size_t offset = kSlabBytes; offset != 0; offset -= sizeof(Signal))
        free_.push_back(reinterpret_cast<Signal*>(static_cast<char*>(slab) + offset - sizeof(Signal)));
    }
    signal = free_.back();
    free_.pop_back();
  }
  new (signal) Signal{};
  signal->amd.kind = kind;
  signal->amd.value = initial;
  signal->references.store(1, std::memory_order_release);
  return signal;
}

void SignalPool::release(Signal* signal) {
  if (signal->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  signal->amd.kind = abi::AMD_SIGNAL_KIND_INVALID;
  std::lock_guard lock(mutex_);
  free_.push_back(signal);
}

SignalRef::SignalRef(SignalPool* pool, abi::hsa_signal_t handle) {
  if (handle.handle == 0) return;
  pool_ = pool;
  signal_ = Signal::from(handle);
  pool_->retain(signal_);
}

SignalRef& SignalRef::operator=(SignalRef&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(signal_, other.signal_);
  return *this;
}

SignalRef::~SignalRef() {
  if (signal_ != nullptr) pool_->release(signal_);
}

bool condition_holds(abi::hsa_signal_condition_t condition, std::int64_t value, std::int64_t compare) {
  switch (condition) {
    case abi::HSA_SIGNAL_CONDITION_EQ:
      return value == compare;
    case abi::HSA_SIGNAL_CONDITION_NE:
      return value != compare;
    case abi::HSA_SIGNAL_CONDITION_LT:
      return value < compare;
    case abi::HSA_SIGNAL_CONDITION_GTE:
      return value >= compare;
  }
  return false;
}

std::int64_t wait_for(Signal* signal, abi::hsa_signal_condition_t condition, std::int64_t compare,
                      std::uint64_t timeout_ns) {
  std::int64_t value = signal->load();
  if (condition_holds(condition, value, compare) || timeout_ns == 0) return value;
  const std::uint64_t start = host_now_ns();
  signal->waiters.fetch_add(1, std::memory_order_seq_cst);
  while (true) {
    std::uint32_t sequence = signal->sequence.load(std::memory_order_seq_cst);
    value = signal->load();
    if (condition_holds(condition, value, compare)) break;
    std::uint64_t sleep = KernelActivity::longest_sleep_ns();
    if (timeout_ns != UINT64_MAX) {
      std::uint64_t waited = host_now_ns() - start;
      if (waited >= timeout_ns) break;
      sleep = std::min(sleep, timeout_ns - waited);
    }
    futex_wait(&signal->sequence, sequence, sleep);
  }
  signal->waiters.fetch_sub(1, std::memory_order_seq_cst);
  return value;
}

std::uint32_t MultiWait::ticket() { return g_multi_sequence.load(std::memory_order_seq_cst); }

void MultiWait::sleep(std::uint32_t ticket, const std::vector<SignalCondition>& conditions,
                      std::uint64_t timeout_ns) {
  for (const SignalCondition& c : conditions) c.signal->multi_waiters.fetch_add(1, std::memory_order_seq_cst);
  bool met = std::any_of(conditions.begin(), conditions.end(), [](const auto& c) { return c.holds(); });
  if (!met) {
    // With nothing to poll there is nothing that a kernel could change behind our back.
    std::uint64_t limit =
        conditions.empty() ? timeout_ns : std::min(timeout_ns, KernelActivity::longest_sleep_ns());
    futex_wait(&g_multi_sequence, ticket, limit);
  }
  for (const SignalCondition& c : conditions) c.signal->multi_waiters.fetch_sub(1, std::memory_order_seq_cst);
}

void MultiWait::wake_all() {
  g_multi_sequence.fetch_add(1, std::memory_order_seq_cst);
  futex_wake_all(&g_multi_sequence);
}

KernelActivity::KernelActivity() { g_running_kernels.fetch_add(1, std::memory_order_seq_cst); }
KernelActivity::~KernelActivity() { g_running_kernels.fetch_sub(1, std::memory_order_seq_cst); }

std::uint64_t KernelActivity::longest_sleep_ns() {
  return g_running_kernels.load(std::memory_order_relaxed) != 0 ? 1'000'000 : 20'000'000;
}

}  // namespace kerncap::sim::rt
