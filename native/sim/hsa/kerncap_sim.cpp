#include "sim/hsa/kerncap_sim.h"

#include <map>

#include "sim/hsa/hardware_queue.h"
#include "sim/hsa/runtime.h"
#include "sim/hsa/written.h"

using kerncap::sim::rt::Runtime;
using kerncap::sim::rt::WrittenRanges;

#define KERNCAP_EXPORT extern "C" __attribute__((visibility("default")))

KERNCAP_EXPORT bool kerncap_sim_last_dispatch(const void* queue, kerncap_sim_dispatch* out) {
  Runtime* rt = Runtime::get();
  if (rt == nullptr || out == nullptr) return false;
  auto owner = rt->queues.find(static_cast<const kerncap::abi::hsa_queue_t*>(queue));
  if (owner == nullptr || owner->hardware() == nullptr) return false;
  return owner->hardware()->last_dispatch(out);
}

KERNCAP_EXPORT void kerncap_sim_track_writes(bool enable) { WrittenRanges::instance().enable(enable); }

KERNCAP_EXPORT size_t kerncap_sim_take_written(kerncap_sim_range* out, size_t capacity) {
  return WrittenRanges::instance().take(out, out == nullptr ? 0 : capacity);
}

KERNCAP_EXPORT const char* kerncap_sim_cost_table(uint64_t agent_handle) {
  static auto* texts = new std::map<kerncap::sim::Arch, std::string>;
  static auto* mutex = new std::mutex;
  Runtime* rt = Runtime::get();
  auto* agent = rt != nullptr ? rt->find_gpu({agent_handle}) : nullptr;
  if (agent == nullptr) return nullptr;
  const kerncap::sim::Arch arch = rt->config().gpu.arch;
  std::lock_guard lock(*mutex);
  auto [it, fresh] = texts->try_emplace(arch);
  if (fresh) it->second = kerncap::sim::cost_table_text(arch);
  return it->second.c_str();
}
