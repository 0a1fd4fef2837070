// The functions on signals. Every operation is sequentially consistent, which satisfies the weaker orders
// too.
#include <algorithm>

#include "sim/hsa/impl.h"
#include "sim/hsa/queue.h"
#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

using namespace kerncap::abi;  // NOLINT

struct SignalGroup {
  std::vector<hsa_signal_t> signals;
};

void store(hsa_signal_t handle, hsa_signal_value_t value) {
  Signal* signal = Signal::from(handle);
  if (signal->doorbell_of != nullptr)
    signal->doorbell_of->ring(static_cast<std::uint64_t>(value));
  else
    signal->store(value);
}

template <typename Update>
hsa_signal_value_t update(hsa_signal_t handle, Update compute) {
  Signal* signal = Signal::from(handle);
  std::int64_t old = signal->load();
  while (!__atomic_compare_exchange_n(&signal->amd.value, &old, compute(old), true, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
  }
  signal->notify();
  return old;
}

std::uint64_t ticks_to_ns(std::uint64_t ticks) { return ticks; }  // the system clock counts nanoseconds
static_assert(kSystemClockHz == 1'000'000'000);

hsa_status_t create(std::int64_t initial, std::uint32_t consumers, const hsa_agent_t* agents,
                    hsa_signal_t* out) {
  KERNCAP_SIM_RUNTIME(rt);
  if (out == nullptr || (consumers != 0 && agents == nullptr)) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  for (std::uint32_t i = 0; i < consumers; ++i)
    if (rt->find_agent(agents[i]) == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  Signal* signal = rt->signals.create(initial);
  if (signal == nullptr) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  *out = signal->handle();
  return HSA_STATUS_SUCCESS;
}

// UINT32_MAX when the time is up. With `all`, waits for all and fills `values[i]` for each; else for one,
// whose value goes to *values.
std::uint32_t wait_many(std::uint32_t count, const hsa_signal_t* signals,
                        const hsa_signal_condition_t* conditions, const hsa_signal_value_t* compares,
                        std::uint64_t timeout_ns, bool all, hsa_signal_value_t* values) {
  Runtime* rt = Runtime::get();
  if (rt == nullptr || count == 0) return UINT32_MAX;
  std::vector<SignalRef> refs;
  for (std::uint32_t i = 0; i < count; ++i) refs.emplace_back(&rt->signals, signals[i]);
  const auto start = std::chrono::steady_clock::now();
  std::vector<bool> met(count, false);
  while (true) {
    const std::uint32_t ticket = MultiWait::ticket();
    std::vector<SignalCondition> open;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!refs[i] || met[i]) continue;
      const std::int64_t value = refs[i]->load();
      if (condition_holds(conditions[i], value, compares[i])) {
        if (values != nullptr) values[all ? i : 0] = value;
        if (!all) return i;
        met[i] = true;
      } else {
        open.push_back({refs[i].get(), conditions[i], compares[i]});
      }
    }
    if (open.empty()) return all ? 0 : UINT32_MAX;
    std::uint64_t left = UINT64_MAX;
    if (timeout_ns != UINT64_MAX) {
      const auto waited = static_cast<std::uint64_t>(
          std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
      if (waited >= timeout_ns) return UINT32_MAX;
      left = timeout_ns - waited;
    }
    MultiWait::sleep(ticket, open, left);
  }
}

}  // namespace

namespace impl {

hsa_status_t hsa_signal_create(hsa_signal_value_t initial_value, std::uint32_t num_consumers,
                               const hsa_agent_t* consumers, hsa_signal_t* signal) {
  return create(initial_value, num_consumers, consumers, signal);
}

// GPU-only signals are ordinary ones that nobody should wait for on the host.
hsa_status_t hsa_amd_signal_create(hsa_signal_value_t initial_value, std::uint32_t num_consumers,
                                   const hsa_agent_t* consumers, std::uint64_t attributes,
                                   hsa_signal_t* signal) {
  if ((attributes & ~std::uint64_t{HSA_AMD_SIGNAL_AMD_GPU_ONLY | HSA_AMD_SIGNAL_IPC}) != 0)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return create(initial_value, num_consumers, consumers, signal);
}

hsa_status_t hsa_signal_destroy(hsa_signal_t signal) {
  KERNCAP_SIM_RUNTIME(rt);
  if (signal.handle == 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (Signal::from(signal)->amd.kind != AMD_SIGNAL_KIND_USER) return HSA_STATUS_ERROR_INVALID_SIGNAL;
  rt->signals.release(Signal::from(signal));
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_signal_value_pointer(hsa_signal_t signal, volatile hsa_signal_value_t** value_ptr) {
  KERNCAP_SIM_RUNTIME(rt);
  (void)rt;
  if (value_ptr == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (signal.handle == 0 || Signal::from(signal)->amd.kind != AMD_SIGNAL_KIND_USER)
    return HSA_STATUS_ERROR_INVALID_SIGNAL;
  *value_ptr = &Signal::from(signal)->amd.value;
  return HSA_STATUS_SUCCESS;
}

hsa_signal_value_t hsa_signal_load_relaxed(hsa_signal_t signal) { return Signal::from(signal)->load(); }
hsa_signal_value_t hsa_signal_load_scacquire(hsa_signal_t signal) { return Signal::from(signal)->load(); }
void hsa_signal_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value) { store(signal, value); }
void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value) { store(signal, value); }
void hsa_signal_silent_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  Signal::from(signal)->store_silently(value);
}
void hsa_signal_silent_store_screlease(hsa_signal_t signal, hsa_signal_value_t value) {
  Signal::from(signal)->store_silently(value);
}

#define KERNCAP_SIM_SIGNAL_OP(op, order, expression)                                             \
  void hsa_signal_##op##_##order(hsa_signal_t signal, hsa_signal_value_t value) {                \
    update(signal, [value](std::int64_t old) { return static_cast<std::int64_t>(expression); }); \
  }
#define KERNCAP_SIM_SIGNAL_ORDERS(op, expression)  \
  KERNCAP_SIM_SIGNAL_OP(op, relaxed, expression)   \
  KERNCAP_SIM_SIGNAL_OP(op, scacquire, expression) \
  KERNCAP_SIM_SIGNAL_OP(op, screlease, expression) \
  KERNCAP_SIM_SIGNAL_OP(op, scacq_screl, expression)
KERNCAP_SIM_SIGNAL_ORDERS(and, old& value)
KERNCAP_SIM_SIGNAL_ORDERS(or, old | value)
KERNCAP_SIM_SIGNAL_ORDERS(xor, old ^ value)
KERNCAP_SIM_SIGNAL_ORDERS(add, static_cast<std::uint64_t>(old) + static_cast<std::uint64_t>(value))
KERNCAP_SIM_SIGNAL_ORDERS(subtract, static_cast<std::uint64_t>(old) - static_cast<std::uint64_t>(value))

#define KERNCAP_SIM_SIGNAL_SWAP(order)                                                            \
  hsa_signal_value_t hsa_signal_exchange_##order(hsa_signal_t signal, hsa_signal_value_t value) { \
    return update(signal, [value](std::int64_t) { return value; });                               \
  }                                                                                               \
  hsa_signal_value_t hsa_signal_cas_##order(hsa_signal_t signal, hsa_signal_value_t expected,     \
                                            hsa_signal_value_t value) {                           \
    return update(signal, [=](std::int64_t old) { return old == expected ? value : old; });       \
  }
KERNCAP_SIM_SIGNAL_SWAP(relaxed)
KERNCAP_SIM_SIGNAL_SWAP(scacquire)
KERNCAP_SIM_SIGNAL_SWAP(screlease)
KERNCAP_SIM_SIGNAL_SWAP(scacq_screl)

hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, hsa_signal_condition_t condition,
                                             hsa_signal_value_t compare_value, std::uint64_t timeout_hint,
                                             hsa_wait_state_t) {
  Runtime* rt = Runtime::get();
  if (rt == nullptr) return Signal::from(signal)->load();
  SignalRef ref(&rt->signals, signal);
  return wait_for(ref.get(), condition, compare_value,
                  timeout_hint == UINT64_MAX ? UINT64_MAX : ticks_to_ns(timeout_hint));
}

hsa_signal_value_t hsa_signal_wait_relaxed(hsa_signal_t signal, hsa_signal_condition_t condition,
                                           hsa_signal_value_t compare_value, std::uint64_t timeout_hint,
                                           hsa_wait_state_t wait_state_hint) {
  return hsa_signal_wait_scacquire(signal, condition, compare_value, timeout_hint, wait_state_hint);
}

std::uint32_t hsa_amd_signal_wait_any(std::uint32_t signal_count, hsa_signal_t* signals,
                                      hsa_signal_condition_t* conds, hsa_signal_value_t* values,
                                      std::uint64_t timeout_hint, hsa_wait_state_t,
                                      hsa_signal_value_t* satisfying_value) {
  return wait_many(signal_count, signals, conds, values, timeout_hint, false, satisfying_value);
}

std::uint32_t hsa_amd_signal_wait_all(std::uint32_t signal_count, hsa_signal_t* signals,
                                      hsa_signal_condition_t* conds, hsa_signal_value_t* values,
                                      std::uint64_t timeout_hint, hsa_wait_state_t,
                                      hsa_signal_value_t* satisfying_values) {
  return wait_many(signal_count, signals, conds, values, timeout_hint, true, satisfying_values);
}

hsa_status_t hsa_amd_signal_async_handler(hsa_signal_t signal, hsa_signal_condition_t cond,
                                          hsa_signal_value_t value, hsa_amd_signal_handler handler,
                                          void* arg) {
  KERNCAP_SIM_RUNTIME(rt);
  if (handler == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (signal.handle == 0 || Signal::from(signal)->amd.kind != AMD_SIGNAL_KIND_USER)
    return HSA_STATUS_ERROR_INVALID_SIGNAL;
  rt->events.add_handler(signal, cond, value, handler, arg);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_async_function(void (*callback)(void*), void* arg) {
  KERNCAP_SIM_RUNTIME(rt);
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  rt->events.run_soon([callback, arg] { callback(arg); });
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_signal_group_create(std::uint32_t num_signals, const hsa_signal_t* signals, std::uint32_t,
                                     const hsa_agent_t*, hsa_signal_group_t* signal_group) {
  KERNCAP_SIM_RUNTIME(rt);
  (void)rt;
  if (num_signals == 0 || signals == nullptr || signal_group == nullptr)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  auto* group = new SignalGroup{{signals, signals + num_signals}};  // until hsa_signal_group_destroy
  signal_group->handle = reinterpret_cast<std::uint64_t>(group);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_signal_group_destroy(hsa_signal_group_t signal_group) {
  if (signal_group.handle == 0) return HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP;
  delete reinterpret_cast<SignalGroup*>(signal_group.handle);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_signal_group_wait_any_scacquire(hsa_signal_group_t signal_group,
                                                 const hsa_signal_condition_t* conditions,
                                                 const hsa_signal_value_t* compare_values, hsa_wait_state_t,
                                                 hsa_signal_t* signal, hsa_signal_value_t* value) {
  if (signal_group.handle == 0) return HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP;
  if (conditions == nullptr || compare_values == nullptr || signal == nullptr || value == nullptr)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  const auto& signals = reinterpret_cast<SignalGroup*>(signal_group.handle)->signals;
  const std::uint32_t met = wait_many(static_cast<std::uint32_t>(signals.size()), signals.data(), conditions,
                                      compare_values, UINT64_MAX, false, value);
  if (met == UINT32_MAX) return HSA_STATUS_ERROR;
  *signal = signals[met];
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_signal_group_wait_any_relaxed(hsa_signal_group_t signal_group,
                                               const hsa_signal_condition_t* conditions,
                                               const hsa_signal_value_t* compare_values,
                                               hsa_wait_state_t wait_state_hint, hsa_signal_t* signal,
                                               hsa_signal_value_t* value) {
  return hsa_signal_group_wait_any_scacquire(signal_group, conditions, compare_values, wait_state_hint,
                                             signal, value);
}

}  // namespace impl
}  // namespace kerncap::sim::rt
