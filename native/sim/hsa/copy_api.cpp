// The functions that move memory.
#include <cstring>

#include "sim/hsa/copy_engine.h"
#include "sim/hsa/impl.h"
#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {
namespace {

using namespace kerncap::abi;  // NOLINT

bool collect(Runtime* rt, std::uint32_t count, const hsa_signal_t* signals, std::vector<SignalRef>* out) {
  if (count != 0 && signals == nullptr) return false;
  for (std::uint32_t i = 0; i < count; ++i) out->emplace_back(&rt->signals, signals[i]);
  return true;
}

// The engine of whichever side is a GPU; of the first GPU for copies within host memory.
CopyEngine* engine_for(Runtime* rt, Agent* dst, Agent* src) {
  if (dst->is_gpu) return dst->copies.get();
  if (src->is_gpu) return src->copies.get();
  return rt->agents()[1]->copies.get();
}

hsa_status_t check_bounds(Runtime* rt, const void* address, std::uint64_t size, const char* what) {
  if (rt->memory.in_bounds(address, size)) return HSA_STATUS_SUCCESS;
  std::optional<Block> block = rt->memory.find(reinterpret_cast<std::uint64_t>(address));
  complain("copy: %llu bytes at %p leave the %s, which lies at %#llx and holds %llu bytes",
           static_cast<unsigned long long>(size), address, what,
           static_cast<unsigned long long>(block ? block->base : 0),
           static_cast<unsigned long long>(block ? block->size : 0));
  return HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

}  // namespace

namespace impl {

hsa_status_t hsa_memory_copy(void* dst, const void* src, std::size_t size) {
  KERNCAP_SIM_RUNTIME(rt);
  if (size == 0) return HSA_STATUS_SUCCESS;
  if (dst == nullptr || src == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (hsa_status_t s = check_bounds(rt, dst, size, "destination"); s != HSA_STATUS_SUCCESS) return s;
  if (hsa_status_t s = check_bounds(rt, src, size, "source"); s != HSA_STATUS_SUCCESS) return s;
  std::memmove(dst, src, size);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_memory_fill(void* ptr, std::uint32_t value, std::size_t count) {
  KERNCAP_SIM_RUNTIME(rt);
  if (ptr == nullptr || reinterpret_cast<std::uint64_t>(ptr) % sizeof value != 0)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (hsa_status_t s = check_bounds(rt, ptr, count * sizeof value, "allocation"); s != HSA_STATUS_SUCCESS)
    return s;
  std::fill_n(static_cast<std::uint32_t*>(ptr), count, value);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_memory_async_copy(void* dst, hsa_agent_t dst_agent, const void* src,
                                       hsa_agent_t src_agent, std::size_t size, std::uint32_t num_dep_signals,
                                       const hsa_signal_t* dep_signals, hsa_signal_t completion_signal) {
  KERNCAP_SIM_RUNTIME(rt);
  if (dst == nullptr || src == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Agent* to = rt->find_agent(dst_agent);
  Agent* from = rt->find_agent(src_agent);
  if (to == nullptr || from == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  if (hsa_status_t s = check_bounds(rt, dst, size, "destination"); s != HSA_STATUS_SUCCESS) return s;
  if (hsa_status_t s = check_bounds(rt, src, size, "source"); s != HSA_STATUS_SUCCESS) return s;
  std::vector<SignalRef> dependencies;
  if (!collect(rt, num_dep_signals, dep_signals, &dependencies)) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  engine_for(rt, to, from)
      ->enqueue(std::move(dependencies), SignalRef(&rt->signals, completion_signal), size,
                [=] { std::memmove(dst, src, size); });
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_memory_async_copy_on_engine(void* dst, hsa_agent_t dst_agent, const void* src,
                                                 hsa_agent_t src_agent, std::size_t size,
                                                 std::uint32_t num_dep_signals,
                                                 const hsa_signal_t* dep_signals,
                                                 hsa_signal_t completion_signal,
                                                 hsa_amd_sdma_engine_id_t engine_id, bool) {
  if (engine_id == 0 || (engine_id & (engine_id - 1)) != 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  return hsa_amd_memory_async_copy(dst, dst_agent, src, src_agent, size, num_dep_signals, dep_signals,
                                   completion_signal);
}

hsa_status_t hsa_amd_memory_copy_engine_status(hsa_agent_t dst_agent, hsa_agent_t src_agent,
                                               std::uint32_t* engine_ids_mask) {
  KERNCAP_SIM_RUNTIME(rt);
  if (engine_ids_mask == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (rt->find_agent(dst_agent) == nullptr || rt->find_agent(src_agent) == nullptr)
    return HSA_STATUS_ERROR_INVALID_AGENT;
  *engine_ids_mask = HSA_AMD_SDMA_ENGINE_0 | HSA_AMD_SDMA_ENGINE_1;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_memory_get_preferred_copy_engine(hsa_agent_t dst_agent, hsa_agent_t src_agent,
                                                      std::uint32_t* recommended_ids_mask) {
  return hsa_amd_memory_copy_engine_status(dst_agent, src_agent, recommended_ids_mask);
}

hsa_status_t hsa_amd_memory_async_copy_rect(const hsa_pitched_ptr_t* dst, const hsa_dim3_t* dst_offset,
                                            const hsa_pitched_ptr_t* src, const hsa_dim3_t* src_offset,
                                            const hsa_dim3_t* range, hsa_agent_t copy_agent,
                                            hsa_amd_copy_direction_t, std::uint32_t num_dep_signals,
                                            const hsa_signal_t* dep_signals, hsa_signal_t completion_signal) {
  KERNCAP_SIM_RUNTIME(rt);
  if (dst == nullptr || src == nullptr || dst_offset == nullptr || src_offset == nullptr || range == nullptr)
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Agent* agent = rt->find_gpu(copy_agent);
  if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
  std::vector<SignalRef> dependencies;
  if (!collect(rt, num_dep_signals, dep_signals, &dependencies)) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  // x in bytes, y in rows, z in slices.
  auto work = [to = *dst, from = *src, at = *dst_offset, off = *src_offset, n = *range] {
    for (std::uint32_t z = 0; z < n.z; ++z)
      for (std::uint32_t y = 0; y < n.y; ++y)
        std::memmove(
            static_cast<char*>(to.base) + (at.z + z) * to.slice + (at.y + y) * to.pitch + at.x,
            static_cast<char*>(from.base) + (off.z + z) * from.slice + (off.y + y) * from.pitch + off.x, n.x);
  };
  agent->copies->enqueue(std::move(dependencies), SignalRef(&rt->signals, completion_signal),
                         std::uint64_t{range->x} * range->y * range->z, std::move(work));
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_profiling_async_copy_enable(bool enable) {
  KERNCAP_SIM_RUNTIME(rt);
  rt->profile_copies.store(enable);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_amd_profiling_get_async_copy_time(hsa_signal_t signal,
                                                   hsa_amd_profiling_async_copy_time_t* time) {
  KERNCAP_SIM_RUNTIME(rt);
  (void)rt;
  if (time == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (signal.handle == 0) return HSA_STATUS_ERROR_INVALID_SIGNAL;
  time->start = Signal::from(signal)->amd.start_ts * kNanosecondsPerTick;
  time->end = Signal::from(signal)->amd.end_ts * kNanosecondsPerTick;
  return HSA_STATUS_SUCCESS;
}

}  // namespace impl
}  // namespace kerncap::sim::rt
