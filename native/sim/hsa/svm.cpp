#include "sim/hsa/svm.h"

#include <algorithm>

#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {

using namespace kerncap::abi;  // NOLINT

std::uint64_t* Svm::field(Attributes& a, std::uint64_t attribute) {
  switch (attribute) {
    case HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG:
      return &a.global_flag;
    case HSA_AMD_SVM_ATTRIB_READ_ONLY:
      return &a.read_only;
    case HSA_AMD_SVM_ATTRIB_HIVE_LOCAL:
      return &a.hive_local;
    case HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY:
      return &a.granularity;
    case HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION:
      return &a.preferred;
    case HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION:
      return &a.prefetch;
    case HSA_AMD_SVM_ATTRIB_READ_MOSTLY:
      return &a.read_mostly;
    case HSA_AMD_SVM_ATTRIB_GPU_EXEC:
      return &a.gpu_exec;
    default:
      return nullptr;
  }
}

void Svm::carve(std::uint64_t base, std::uint64_t size) {
  auto split = [this](std::uint64_t at) {
    auto it = ranges_.upper_bound(at);
    if (it == ranges_.begin()) return;
    --it;
    if (it->first == at || at >= it->first + it->second.size) return;
    const std::uint64_t tail = it->first + it->second.size - at;
    it->second.size -= tail;
    ranges_[at] = {tail, it->second.attributes};
  };
  split(base);
  split(base + size);
  std::uint64_t at = base;
  for (auto it = ranges_.lower_bound(base); at < base + size;) {
    const std::uint64_t gap_end = it != ranges_.end() ? std::min(it->first, base + size) : base + size;
    if (gap_end > at) ranges_[at] = {gap_end - at, {}};
    if (gap_end == base + size) break;
    at = it->first + it->second.size;
    ++it;
  }
}

hsa_status_t Svm::set(std::uint64_t base, std::uint64_t size, const hsa_amd_svm_attribute_pair_t* list,
                      std::size_t count) {
  const std::uint64_t end = page_up(base + size);  // whole pages, as ROCr
  base = page_down(base);
  size = end - base;
  GpuSet gain = 0, lose = 0, in_place = 0;
  Attributes scratch;
  for (std::size_t i = 0; i < count; ++i) {
    const auto [attribute, value] = list[i];
    if (field(scratch, attribute) != nullptr) continue;
    Agent* agent = runtime_->find_agent({value});
    if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
    const GpuSet bit = agent->is_gpu ? GpuSet{1} << agent->gpu_index : 0;
    switch (attribute) {
      case HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE:
        in_place |= bit;
        [[fallthrough]];
      case HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE:
        gain |= bit;
        break;
      case HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS:
        lose |= bit;
        break;
      default:
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    }
  }
  std::lock_guard lock(mutex_);
  carve(base, size);
  for (auto it = ranges_.lower_bound(base); it != ranges_.end() && it->first < base + size; ++it) {
    Attributes& attributes = it->second.attributes;
    for (std::size_t i = 0; i < count; ++i)
      if (std::uint64_t* target = field(attributes, list[i].attribute)) *target = list[i].value;
    attributes.accessible = (attributes.accessible | gain) & ~lose;
    attributes.in_place = ((attributes.in_place & ~gain) | in_place) & ~lose;
  }
  if (gain != 0) runtime_->memory.expose_host_range(base, size, gain & ~lose, "svm");
  if (lose != 0) runtime_->memory.hide_host_range(base, size, lose);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t Svm::get(std::uint64_t base, std::uint64_t size, hsa_amd_svm_attribute_pair_t* list,
                      std::size_t count) const {
  const std::uint64_t end = page_up(base + size);
  base = page_down(base);
  size = end - base;
  std::lock_guard lock(mutex_);
  // What holds for all of the range: the first range's values; access only where every part has it.
  Attributes attributes;
  bool first = true;
  auto it = ranges_.upper_bound(base);
  if (it != ranges_.begin() && std::prev(it)->first + std::prev(it)->second.size > base) --it;
  std::uint64_t covered = base;
  for (; it != ranges_.end() && it->first < base + size && it->first <= covered; ++it) {
    if (first) {
      attributes = it->second.attributes;
      first = false;
    }
    attributes.accessible &= it->second.attributes.accessible;
    attributes.in_place &= it->second.attributes.in_place;
    covered = it->first + it->second.size;
  }
  if (covered < base + size) attributes.accessible = attributes.in_place = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (list[i].attribute == HSA_AMD_SVM_ATTRIB_ACCESS_QUERY) {
      Agent* agent = runtime_->find_agent({list[i].value});
      if (agent == nullptr) return HSA_STATUS_ERROR_INVALID_AGENT;
      const GpuSet bit = agent->is_gpu ? GpuSet{1} << agent->gpu_index : 0;
      if (!agent->is_gpu || (attributes.in_place & bit) != 0)
        list[i].attribute = HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE;
      else if ((attributes.accessible & bit) != 0)
        list[i].attribute = HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE;
      else
        list[i].attribute = HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS;
      continue;
    }
    const std::uint64_t* value = field(attributes, list[i].attribute);
    if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    list[i].value = *value;
  }
  return HSA_STATUS_SUCCESS;
}

void Svm::prefetched(std::uint64_t base, std::uint64_t size, hsa_agent_t agent) {
  const std::uint64_t first = page_down(base), last = page_up(base + size);
  std::lock_guard lock(mutex_);
  carve(first, last - first);
  for (auto it = ranges_.lower_bound(first); it != ranges_.end() && it->first < last; ++it)
    it->second.attributes.prefetch = agent.handle;
}

}  // namespace kerncap::sim::rt
