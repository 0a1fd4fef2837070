// The functions on queues, and dispatch profiling.
#include <new>

#include "sim/hsa/hardware_queue.h"
#include "sim/hsa/impl.h"
#include "sim/hsa/intercept_queue.h"
#include "sim/hsa/put.h"
#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

using namespace kerncap::abi;  // NOLINT

constexpr std::uint32_t kMinPackets = 64;  // one page of ring
constexpr std::uint32_t kMaxPackets = 131072;

bool is_power_of_two(std::uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }

hsa_status_t make_hardware_queue(Runtime* rt, hsa_agent_t handle, std::uint32_t size, hsa_queue_type32_t type,
                                 QueueErrorCallback callback, void* data,
                                 std::shared_ptr<HardwareQueue>* out) {
  if (!is_power_of_two(size) || type > HSA_QUEUE_TYPE_COOPERATIVE) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Agent* agent = rt->find_agent(handle);
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  if (!agent->is_gpu) return HSA_STATUS_ERROR_INVALID_QUEUE_CREATION;
  if (size > kMaxPackets) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  try {
    *out = std::make_shared<HardwareQueue>(rt, agent, std::max(size, kMinPackets), type, callback, data);
  } catch (const std::bad_alloc&) {
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  }
  return HSA_STATUS_SUCCESS;
}

amd_queue_v2_t* amd(const hsa_queue_t* queue) {
  return reinterpret_cast<amd_queue_v2_t*>(const_cast<hsa_queue_t*>(queue));
}

hsa_status_t find_hardware(const hsa_queue_t* queue, std::shared_ptr<Queue>* owner,
                           HardwareQueue** hardware) {
  KERNCAP_SIM_RUNTIME(rt);
  *owner = rt->queues.find(queue);
  *hardware = *owner != nullptr ? (*owner)->hardware() : nullptr;
  return *hardware != nullptr ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_QUEUE;
}

std::atomic<hsa_amd_runtime_queue_notifier> g_notifier{nullptr};

}  // namespace

namespace impl {

hsa_status_t hsa_queue_create(hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                              void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data, std::uint32_t,
                              std::uint32_t, hsa_queue_t** queue) {
  KERNCAP_SIM_RUNTIME(rt);
  if (queue == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<HardwareQueue> hardware;
  hsa_status_t status = make_hardware_queue(rt, agent, size, type, callback, data, &hardware);
  if (status != HSA_STATUS_SUCCESS) return status;
  hardware->start();
  *queue = hardware->handle();
  rt->queues.add(std::move(hardware));
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_queue_intercept_create(hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                                            void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data,
                                            std::uint32_t, std::uint32_t, hsa_queue_t** queue) {
  KERNCAP_SIM_RUNTIME(rt);
  if (queue == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (size < 3) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<HardwareQueue> hardware;
  hsa_status_t status = make_hardware_queue(rt, agent, size, type, callback, data, &hardware);
  if (status != HSA_STATUS_SUCCESS) return status;
  std::shared_ptr<InterceptQueue> intercept;
  try {
    intercept = std::make_shared<InterceptQueue>(rt, hardware, size);
  } catch (const std::bad_alloc&) {
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  }
  intercept->connect();
  hardware->start();
  *queue = intercept->handle();
  rt->queues.add(std::move(intercept));
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_queue_intercept_register(hsa_queue_t* queue, hsa_amd_queue_intercept_handler callback,
                                              void* user_data) {
  KERNCAP_SIM_RUNTIME(rt);
  if (queue == nullptr || callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  auto intercept = std::dynamic_pointer_cast<InterceptQueue>(rt->queues.find(queue));
  if (intercept == nullptr) return HSA_STATUS_ERROR_INVALID_QUEUE;
  intercept->add_handler(callback, user_data);
  return HSA_STATUS_SUCCESS;
}

// ROCr tells of the queues it makes for itself (for copies by kernels). This runtime makes none.
hsa_status_t hsa_amd_runtime_queue_create_register(hsa_amd_runtime_queue_notifier callback, void*) {
  KERNCAP_SIM_RUNTIME(rt);
  (void)rt;
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  hsa_amd_runtime_queue_notifier none = nullptr;
  return g_notifier.compare_exchange_strong(none, callback) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR;
}

hsa_status_t hsa_soft_queue_create(hsa_region_t region, std::uint32_t size, hsa_queue_type32_t type,
                                   std::uint32_t features, hsa_signal_t doorbell_signal,
                                   hsa_queue_t** queue) {
  KERNCAP_SIM_RUNTIME(rt);
  if (queue == nullptr || !is_power_of_two(size) || type > HSA_QUEUE_TYPE_SINGLE || features == 0 ||
      doorbell_signal.handle == 0)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (rt->find_pool(region.handle) == nullptr) return HSA_STATUS_ERROR_INVALID_REGION;
  try {
    auto soft = std::make_shared<SoftQueue>(rt, size, type, Signal::from(doorbell_signal));
    *queue = soft->handle();
    (*queue)->features = features;
    rt->queues.add(std::move(soft));
  } catch (const std::bad_alloc&) {
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_queue_destroy(hsa_queue_t* queue) {
  KERNCAP_SIM_RUNTIME(rt);
  if (queue == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<Queue> owner = rt->queues.remove(queue);
  if (owner == nullptr) return HSA_STATUS_ERROR_INVALID_QUEUE;
  owner->inactivate();
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_queue_inactivate(hsa_queue_t* queue) {
  KERNCAP_SIM_RUNTIME(rt);
  if (queue == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<Queue> owner = rt->queues.find(queue);
  if (owner == nullptr) return HSA_STATUS_ERROR_INVALID_QUEUE;
  owner->inactivate();
  return HSA_STATUS_SUCCESS;
}

#define KERNCAP_SIM_QUEUE_INDEX(order)                                                                     \
  std::uint64_t hsa_queue_add_write_index_##order(const hsa_queue_t* queue, std::uint64_t value) {         \
    return __atomic_fetch_add(&amd(queue)->write_dispatch_id, value, __ATOMIC_SEQ_CST);                    \
  }                                                                                                        \
  std::uint64_t hsa_queue_cas_write_index_##order(const hsa_queue_t* queue, std::uint64_t expected,        \
                                                  std::uint64_t value) {                                   \
    __atomic_compare_exchange_n(&amd(queue)->write_dispatch_id, &expected, value, false, __ATOMIC_SEQ_CST, \
                                __ATOMIC_SEQ_CST);                                                         \
    return expected;                                                                                       \
  }
KERNCAP_SIM_QUEUE_INDEX(relaxed)
KERNCAP_SIM_QUEUE_INDEX(scacquire)
KERNCAP_SIM_QUEUE_INDEX(screlease)
KERNCAP_SIM_QUEUE_INDEX(scacq_screl)

#define KERNCAP_SIM_QUEUE_LOADS(order)                                         \
  std::uint64_t hsa_queue_load_read_index_##order(const hsa_queue_t* queue) {  \
    return __atomic_load_n(&amd(queue)->read_dispatch_id, __ATOMIC_ACQUIRE);   \
  }                                                                            \
  std::uint64_t hsa_queue_load_write_index_##order(const hsa_queue_t* queue) { \
    return __atomic_load_n(&amd(queue)->write_dispatch_id, __ATOMIC_ACQUIRE);  \
  }
KERNCAP_SIM_QUEUE_LOADS(relaxed)
KERNCAP_SIM_QUEUE_LOADS(scacquire)

#define KERNCAP_SIM_QUEUE_STORES(order)                                                     \
  void hsa_queue_store_read_index_##order(const hsa_queue_t* queue, std::uint64_t value) {  \
    __atomic_store_n(&amd(queue)->read_dispatch_id, value, __ATOMIC_RELEASE);               \
  }                                                                                         \
  void hsa_queue_store_write_index_##order(const hsa_queue_t* queue, std::uint64_t value) { \
    __atomic_store_n(&amd(queue)->write_dispatch_id, value, __ATOMIC_RELEASE);              \
  }
KERNCAP_SIM_QUEUE_STORES(relaxed)
KERNCAP_SIM_QUEUE_STORES(screlease)

hsa_status_t hsa_amd_profiling_set_profiler_enabled(hsa_queue_t* queue, int enable) {
  std::shared_ptr<Queue> owner;
  HardwareQueue* hardware = nullptr;
  hsa_status_t status = find_hardware(queue, &owner, &hardware);
  if (status == HSA_STATUS_SUCCESS) hardware->set_profiling(enable != 0);
  return status;
}

hsa_status_t hsa_amd_profiling_get_dispatch_time(hsa_agent_t agent, hsa_signal_t signal,
                                                 hsa_amd_profiling_dispatch_time_t* time) {
  KERNCAP_SIM_RUNTIME(rt);
  if (time == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (signal.handle == 0) return HSA_STATUS_ERROR_INVALID_SIGNAL;
  if (rt->find_gpu(agent) == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  const amd_signal_t& timed = Signal::from(signal)->amd;
  time->start = timed.start_ts * kNanosecondsPerTick;
  time->end = timed.end_ts * kNanosecondsPerTick;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_profiling_convert_tick_to_system_domain(hsa_agent_t agent, std::uint64_t agent_tick,
                                                             std::uint64_t* system_tick) {
  KERNCAP_SIM_RUNTIME(rt);
  if (system_tick == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Agent* found = rt->find_agent(agent);
  if (found == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  *system_tick = found->is_gpu ? agent_tick * kNanosecondsPerTick : agent_tick;
  return HSA_STATUS_SUCCESS;
}

// A simulated queue uses every compute unit whatever its mask says.
hsa_status_t hsa_amd_queue_cu_set_mask(const hsa_queue_t* queue, std::uint32_t num_cu_mask_count,
                                       const std::uint32_t* cu_mask) {
  if (num_cu_mask_count % 32 != 0 || (num_cu_mask_count != 0 && cu_mask == nullptr))
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<Queue> owner;
  HardwareQueue* hardware = nullptr;
  return find_hardware(queue, &owner, &hardware);
}

hsa_status_t hsa_amd_queue_cu_get_mask(const hsa_queue_t* queue, std::uint32_t num_cu_mask_count,
                                       std::uint32_t* cu_mask) {
  if (num_cu_mask_count == 0 || num_cu_mask_count % 32 != 0 || cu_mask == nullptr)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<Queue> owner;
  HardwareQueue* hardware = nullptr;
  hsa_status_t status = find_hardware(queue, &owner, &hardware);
  if (status != HSA_STATUS_SUCCESS) return status;
  const std::uint32_t units = hardware->agent()->model->compute_units;
  for (std::uint32_t word = 0; word < num_cu_mask_count / 32; ++word) {
    const std::uint32_t left = units > word * 32 ? units - word * 32 : 0;
    cu_mask[word] = left >= 32 ? UINT32_MAX : (1u << left) - 1;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_queue_set_priority(hsa_queue_t* queue, hsa_amd_queue_priority_t priority) {
  if (priority > HSA_AMD_QUEUE_PRIORITY_HIGH) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<Queue> owner;
  HardwareQueue* hardware = nullptr;
  return find_hardware(queue, &owner, &hardware);
}

hsa_status_t hsa_amd_queue_get_info(hsa_queue_t* queue, hsa_queue_info_attribute_t attribute, void* value) {
  if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::shared_ptr<Queue> owner;
  HardwareQueue* hardware = nullptr;
  hsa_status_t status = find_hardware(queue, &owner, &hardware);
  if (status != HSA_STATUS_SUCCESS) return status;
  switch (attribute) {
    case HSA_AMD_QUEUE_INFO_AGENT:
      put(value, hardware->agent()->handle());
      return HSA_STATUS_SUCCESS;
    case HSA_AMD_QUEUE_INFO_DOORBELL_ID:
      put<std::uint64_t>(value, hardware->handle()->id);
      return HSA_STATUS_SUCCESS;
  }
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

}  // namespace impl
}  // namespace kerncap::sim::rt
