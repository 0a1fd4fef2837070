#include "sim/hsa/kerncap_sim.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "sim/hsa/fault_report.h"
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

KERNCAP_EXPORT size_t kerncap_sim_last_fault(char* out, size_t capacity, uint64_t* address) {
  std::uint64_t touched = 0;
  const std::string text = kerncap::sim::rt::last_fault(&touched);
  if (address != nullptr) *address = touched;
  if (out != nullptr && capacity != 0) {
    const size_t length = std::min(text.size(), capacity - 1);
    std::memcpy(out, text.data(), length);
    out[length] = '\0';
  }
  return text.size();
}

KERNCAP_EXPORT void kerncap_sim_place_next_code_object(uint64_t base) {
  if (Runtime* rt = Runtime::get()) rt->loader.place_next(base);
}

KERNCAP_EXPORT void kerncap_sim_schedule(uint64_t seed) {
  Runtime* rt = Runtime::get();
  if (rt == nullptr) return;
  for (const auto& agent : rt->agents())
    if (agent->is_gpu) agent->gpu->set_schedule(seed);
}
