// The part of a session that asks what a kernel writes: silent bytes, poison, references, dumps.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "replay/error.h"
#include "replay/parallel.h"
#include "replay/session.h"
#include "snapshot/error.h"

namespace kerncap::replay {
namespace {

// One bit a byte: floats stay finite, small integers small in their lowest byte.
constexpr unsigned char kPoison = 0x01;
// In place of zero where everything is altered: of 16, 32 and 64 bits, floats that a sum does not swallow.
constexpr unsigned char kForZero = 0x3f;
constexpr std::uint64_t kWindow = 1u << 20;  // bytes looked at by one thread at a time
// Of altered memory, on the device: more than that is altered anew each time.
constexpr std::uint64_t kMostPoisonKept = 1u << 30;

}  // namespace

std::uint64_t Session::silent_bytes(unsigned variant) const {
  struct Part {
    std::size_t item;
    Range range;
  };
  const RangeSet set = written_set();
  const std::vector<Expectation> items = expectations(Against::application, variant);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (const Range& range : set.intersect(RangeSet({{items[i].piece.captured, items[i].piece.bytes}}))) {
      for (std::uint64_t at = range.base; at < range.end(); at += kWindow) {
        parts.push_back({i, {at, std::min(kWindow, range.end() - at)}});
      }
    }
  }
  std::atomic<std::uint64_t> silent{0};
  parallel_for(parts.size(), [&](std::uint64_t i) {
    const auto& [item, range] = parts[i];
    thread_local std::vector<unsigned char> after;
    after.resize(range.bytes);
    items[item].materialise(range.base, range.bytes, after.data());
    silent += equal_bytes(items[item].piece.before + (range.base - items[item].piece.captured), after.data(),
                          range.bytes);
  });
  return silent;
}

std::uint64_t Session::poison_item(const Expectation& item, const RangeSet& where, std::uint64_t granule,
                                   bool everything) {
  std::vector<Range> parts;  // cut where units begin
  for (const Range& range : where.intersect(RangeSet({{item.piece.captured, item.piece.bytes}}))) {
    for (std::uint64_t at = range.base; at < range.end();) {
      const std::uint64_t next = std::min(range.end(), (at / kWindow + 1) * kWindow);
      parts.push_back({at, next - at});
      at = next;
    }
  }
  std::atomic<std::uint64_t> altered{0};
  parallel_for(parts.size(), [&](std::uint64_t part) {
    const Range& range = parts[part];
    const unsigned char* const before = item.piece.before + (range.base - item.piece.captured);
    std::vector<unsigned char> after(range.bytes), now(before, before + range.bytes);
    std::uint64_t here = 0;
    if (everything) {
      for (unsigned char& byte : now) byte = byte == 0 ? kForZero : byte ^ kPoison;
      altered += range.bytes;
      memory_.write(item.piece.live + (range.base - item.piece.captured), now.data(), range.bytes);
      return;
    }
    item.materialise(range.base, range.bytes, after.data());
    const std::uint64_t skip = (granule - range.base % granule) % granule;
    for (std::uint64_t at = skip; at + granule <= range.bytes; at += granule) {
      if (std::memcmp(before + at, after.data() + at, granule) != 0) continue;
      for (std::uint64_t i = 0; i < granule; ++i) now[at + i] ^= kPoison;
      here += granule;
    }
    altered += here;
    memory_.write(item.piece.live + (range.base - item.piece.captured), now.data(), range.bytes);
  });
  return altered;
}

// Puts back what poison() left, from a copy on the device; false where there is none of it.
bool Session::poison_again(const RangeSet& where, std::uint64_t granule, bool everything) {
  if (poisoned_.image == nullptr || poisoned_.granule != granule || poisoned_.everything != everything ||
      !(poisoned_.where == where)) {
    return false;
  }
  for (const Piece& piece : memory_.pieces()) {
    for (const Range& range : where.intersect(RangeSet({{piece.captured, piece.bytes}}))) {
      if (!poisoned_.image->restore(range.base, range.bytes)) return false;
    }
  }
  return true;
}

std::uint64_t Session::poison(const RangeSet& where, std::uint64_t granule, bool everything) {
  if (!poison_again(where, granule, everything)) {
    poisoned_ = {};
    for (const Piece& piece : memory_.pieces()) {
      poisoned_.bytes += poison_item({piece, piece.before, &application_}, where, granule, everything);
    }
    if (!memory_.touchable() && where.bytes() <= kMostPoisonKept) {
      std::vector<Range> pieces;
      for (const Piece& piece : memory_.pieces()) pieces.push_back({piece.captured, piece.bytes});
      poisoned_.where = where;
      poisoned_.granule = granule;
      poisoned_.everything = everything;
      poisoned_.image = std::make_unique<DeviceShadow>(runtime_, agent_);
      poisoned_.image->keep(where.intersect(RangeSet(std::move(pieces))));
    }
  }
  std::uint64_t altered = poisoned_.bytes;
  for (const Variant& variant : variants_) {
    for (std::size_t i = 0; i < variant.module->pieces().size(); ++i) {
      altered += poison_item({variant.module->pieces()[i], variant.module->after(i), nullptr}, where, granule,
                             everything);
    }
  }
  dirty_.unite(where);
  return altered;
}

std::uint64_t Session::keep(const RangeSet& where, unsigned variant) {
  reference_.clear();
  reference_bytes_.clear();
  RangeSet all = where;
  for (const Piece& piece : module(variant).pieces()) all.unite(RangeSet({{piece.captured, piece.bytes}}));
  std::uint64_t kept = 0;
  const auto add = [&](std::uint64_t address, std::vector<unsigned char> bytes) {
    reference_bytes_.push_back(std::move(bytes));
    reference_.push_back({address, reference_bytes_.back().size(), reference_bytes_.back().data()});
  };
  const std::size_t of_memory = memory_.pieces().size();
  const std::vector<Expectation> items = expectations(Against::application, variant);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Piece& piece = items[i].piece;
    for (const Range& range : all.intersect(RangeSet({{piece.captured, piece.bytes}}))) {
      const std::uint64_t offset = range.base - piece.captured;
      std::vector<unsigned char> now(range.bytes);
      memory_.read(piece.live + offset, now.data(), range.bytes);
      kept += range.bytes;
      if (i < of_memory) {
        add(range.base, std::move(now));
        continue;
      }
      // Of variables only what has changed: pointers to each other are not the same in another module.
      for (std::uint64_t at = 0; at < range.bytes;) {
        std::uint64_t end = at;
        while (end < range.bytes && now[end] != piece.before[offset + end]) ++end;
        if (end > at)
          add(range.base + at, {now.begin() + static_cast<std::ptrdiff_t>(at),
                                now.begin() + static_cast<std::ptrdiff_t>(end)});
        at = end + 1;
      }
    }
  }
  std::sort(reference_.begin(), reference_.end(),
            [](const Overlay& a, const Overlay& b) { return a.address < b.address; });
  return kept;
}

bool Session::idempotent(unsigned number, double limit_seconds) {
  Variant& variant = at(number);
  variant.launch.limit_seconds = limit_seconds;
  learn(variant);
  restore(false);
  dispatch(variant, 1, false, limit_seconds);
  const std::vector<Overlay> saved = std::move(reference_);
  const std::vector<std::vector<unsigned char>> saved_bytes = std::move(reference_bytes_);
  const RangeSet where = variant.learned;
  keep(where, number);
  dispatch(variant, 1, false, limit_seconds);
  Comparer comparer(memory_, "", 0);
  const bool same = comparer.compare(expectations(Against::reference, number), &where).different == 0;
  reference_ = saved;
  reference_bytes_ = saved_bytes;
  return same;
}

std::vector<std::string> Session::dump(const std::string& directory) {
  std::vector<std::string> names;
  const RangeSet set = written_set();
  for (const Piece& piece : memory_.pieces()) {
    if (set.intersect(RangeSet({{piece.captured, piece.bytes}})).empty()) continue;
    const std::string name = hex(piece.captured).substr(2) + ".bin";
    std::ofstream file(directory + "/" + name, std::ios::binary | std::ios::trunc);
    std::vector<char> buffer(1u << 20);
    for (std::uint64_t at = 0; at < piece.bytes; at += buffer.size()) {
      const std::uint64_t n = std::min<std::uint64_t>(buffer.size(), piece.bytes - at);
      memory_.read(piece.live + at, buffer.data(), n);
      file.write(buffer.data(), static_cast<std::streamsize>(n));
    }
    file.close();
    if (!file) snapshot::throw_io("cannot write", directory + "/" + name, errno);
    names.push_back(name);
  }
  return names;
}

double Session::memcmp_pass(std::uint64_t* bytes) const {
  const auto start = std::chrono::steady_clock::now();
  *bytes = 0;
  volatile int sink = 0;
  for (const Piece& piece : memory_.pieces()) {
    const unsigned char* const live = memory_.direct(piece.live);
    if (live == nullptr)
      throw ReplayError(ErrorClass::device, "the host cannot read this device's memory directly");
    sink = sink + std::memcmp(live, piece.before, piece.bytes);
    *bytes += piece.bytes;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace kerncap::replay
