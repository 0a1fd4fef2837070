#include "replay/module_data.h"

#include <algorithm>
#include <cstring>

namespace kerncap::replay {

std::vector<const snapshot::RegionRecord*> ModuleData::segments(const snapshot::CaptureReader& capture) {
  std::vector<const snapshot::RegionRecord*> found;
  for (const snapshot::Region& item : capture.regions) {
    const snapshot::RegionRecord& region = item.record;
    if (region.kind == snapshot::RegionKind::code_segment &&
        region.code_object == capture.dispatch.code_object && (region.flags & snapshot::kSaved) != 0) {
      found.push_back(&region);
    }
  }
  return found;
}

void ModuleData::add_piece(const snapshot::CaptureReader& capture, const ReplayMemory& memory,
                           const snapshot::RegionRecord& region, std::uint64_t captured, std::uint64_t live,
                           std::uint64_t bytes, const Moved& moved) {
  const std::uint64_t offset = captured - region.address;
  const unsigned char* const source = memory.before(region) + offset;
  std::vector<unsigned char> before(source, source + bytes), after = before;
  for (const snapshot::ChangeRecord& change : capture.changes) {
    const std::uint64_t lo = std::max(change.address, captured);
    const std::uint64_t hi = std::min(change.address + change.bytes, captured + bytes);
    if (lo < hi)
      std::memcpy(after.data() + (lo - captured), memory.after_bytes(change) + (lo - change.address),
                  hi - lo);
  }
  for (std::vector<unsigned char>* words : {&before, &after}) {
    for (std::uint64_t at = (8 - captured % 8) % 8; at + 8 <= words->size(); at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, words->data() + at, 8);
      bool guessed = false;
      const std::uint64_t now = moved(word, &guessed);
      if (now != word) std::memcpy(words->data() + at, &now, 8);
      if (guessed && words == &before) guessed_.push_back({captured + at, live + at, now});
    }
  }
  before_.push_back(std::move(before));
  after_.push_back(std::move(after));
  pieces_.push_back({captured, live, bytes, before_.back().data(), region.id, offset});
}

void ModuleData::find_variables(const snapshot::CaptureReader& capture, const Find& find) {
  for (const snapshot::Variable& item : capture.variables) {
    if (item.record.code_object != capture.dispatch.code_object) continue;
    const Range here = find(item.name);
    if (here.bytes == item.record.bytes)
      displaced_.push_back({{item.record.address, item.record.bytes}, here.base});
  }
}

std::optional<std::uint64_t> ModuleData::of_variable(std::uint64_t captured) const {
  for (const Displaced& item : displaced_) {
    if (captured - item.captured.base < item.captured.bytes) return captured - item.captured.base + item.live;
  }
  return std::nullopt;
}

void ModuleData::bind_variables(const snapshot::CaptureReader& capture, const ReplayMemory& memory,
                                const Find& find, const Moved& moved) {
  const std::vector<const snapshot::RegionRecord*> segments = ModuleData::segments(capture);
  RangeSet covered;
  for (const snapshot::Variable& item : capture.variables) {
    const snapshot::VariableRecord& wanted = item.record;
    if (wanted.code_object != capture.dispatch.code_object || wanted.bytes == 0) continue;
    const auto inside = [&](const snapshot::RegionRecord* region) {
      return region->address <= wanted.address &&
             wanted.address + wanted.bytes <= region->address + region->bytes;
    };
    const auto region = std::find_if(segments.begin(), segments.end(), inside);
    if (region == segments.end()) continue;
    const Range here = find(item.name);
    if (here.bytes != wanted.bytes) {
      unmatched_.push_back(item.name);
      continue;
    }
    add_piece(capture, memory, **region, wanted.address, here.base, wanted.bytes, moved);
    covered.unite(RangeSet({{wanted.address, wanted.bytes}}));
  }
  // What the application's run changed and this module has no place for. Changes are recorded in granules:
  // the bytes beside a variable are among them, and do not differ.
  std::vector<Range> changed;
  for (const snapshot::ChangeRecord& change : capture.changes) {
    for (const snapshot::RegionRecord* region : segments) {
      if (change.region != region->id) continue;
      const unsigned char* const before = memory.before(*region) + (change.address - region->address);
      const unsigned char* const after = memory.after_bytes(change);
      for (std::uint64_t i = 0; i < change.bytes; ++i) {
        if (before[i] == after[i]) continue;
        const std::uint64_t first = i;
        while (i < change.bytes && before[i] != after[i]) ++i;
        changed.push_back({change.address + first, i - first});
      }
    }
  }
  unmatched_bytes_ = RangeSet(std::move(changed)).minus(covered).bytes();
}

}  // namespace kerncap::replay
