#include "sim/device/code_map.h"

namespace kerncap::sim {

void CodeMap::load(const std::vector<CodeRange>& ranges) {
  const std::unique_lock lock(mutex_);
  for (const CodeRange& range : ranges) {
    if (range.size == 0) continue;
    auto entry = std::make_shared<Entry>();
    entry->range = range;
    by_base_[range.base] = std::move(entry);
  }
}

void CodeMap::unload(const std::vector<CodeRange>& ranges) {
  const std::unique_lock lock(mutex_);
  for (const CodeRange& range : ranges) by_base_.erase(range.base);
}

CodeRange CodeMap::range_of(std::uint64_t address) const {
  const std::shared_lock lock(mutex_);
  const auto next = by_base_.upper_bound(address);
  if (next == by_base_.begin()) return {};
  const CodeRange& range = std::prev(next)->second->range;
  return address < range.base + range.size ? range : CodeRange{};
}

CodeMap::Place CodeMap::find(std::uint64_t address) {
  std::shared_ptr<Entry> entry;
  {
    const std::shared_lock lock(mutex_);
    const auto next = by_base_.upper_bound(address);
    if (next == by_base_.begin()) return {};
    entry = std::prev(next)->second;
  }
  const CodeRange& range = entry->range;
  if (address >= range.base + range.size) return {};
  std::call_once(entry->once,
                 [&] { entry->program = std::make_shared<isa::Program>(arch_, range.base, range.size); });
  if (const isa::Inst* inst = entry->program->at(address)) return {entry->program, inst};
  if ((address & 3u) != 0) return {};
  const std::lock_guard lock(entry->mutex);
  auto& program = entry->entered_at[address];
  if (!program) program = std::make_shared<isa::Program>(arch_, address, range.base + range.size - address);
  return {program, program->at(address)};
}

}  // namespace kerncap::sim
