// Which memory is saved, and what changed: on memory of this process, through a runtime that is one function.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "check.h"
#include "interpose/common/change_finder.h"
#include "interpose/common/memory_image.h"
#include "interpose/common/pointer_scan.h"
#include "interpose/hsa/api.h"
#include "interpose/hsa/memory_reader.h"
#include "snapshot/capture_reader.h"
#include "snapshot/capture_writer.h"
#include "snapshot/error.h"

using namespace kerncap;             // NOLINT
using namespace kerncap::interpose;  // NOLINT

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

const void* unreadable = nullptr;
HsaImageMemory no_pool({}, {});

abi::hsa_status_t copy(void* to, const void* from, std::size_t bytes) {
  const auto* p = static_cast<const char*>(from);
  if (unreadable != nullptr && p <= unreadable && unreadable < p + bytes) return abi::HSA_STATUS_ERROR;
  std::memcpy(to, from, bytes);
  return abi::HSA_STATUS_SUCCESS;
}

// Device memory: pages of our own.
class Memory {
 public:
  explicit Memory(std::uint64_t bytes) : bytes_(bytes) {
    data_ = static_cast<unsigned char*>(
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~Memory() { ::munmap(data_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  unsigned char* data() { return data_; }
  std::uint64_t& word(std::uint64_t index) { return reinterpret_cast<std::uint64_t*>(data_)[index]; }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  unsigned char* data_;
  std::uint64_t bytes_;
};

ImageRegion region(const Memory& memory) {
  ImageRegion r;
  r.source.address = memory.address();
  r.source.bytes = memory.bytes();
  return r;
}

std::vector<ImageRegion> sorted(std::vector<ImageRegion> regions) {
  std::sort(regions.begin(), regions.end(),
            [](const ImageRegion& a, const ImageRegion& b) { return a.source.address < b.source.address; });
  return regions;
}

struct Progress {
  std::atomic<std::uint64_t> done{0}, total{0};
  ImageProgress callbacks() {
    return {&done, &total, [] {}};
  }
};

std::vector<unsigned char> arguments(std::initializer_list<std::uint64_t> words) {
  std::vector<unsigned char> bytes(words.size() * 8);
  std::memcpy(bytes.data(), words.begin(), bytes.size());
  return bytes;
}

// The records beside the regions that a reader insists on.
void finish(snapshot::CaptureWriter& writer, const MemoryImage& image) {
  writer.add(snapshot::ProcessRecord{}, snapshot::RecordType::process);
  writer.add(snapshot::DeviceRecord{}, snapshot::RecordType::device);
  snapshot::CodeObjectRecord code{};
  code.id = 1;
  writer.add(code, snapshot::RecordType::code_object);
  snapshot::DispatchRecord dispatch{};
  dispatch.code_object = 1;
  writer.add(dispatch, snapshot::RecordType::dispatch);
  writer.add(snapshot::KernargRecord{}, snapshot::RecordType::kernarg);
  for (const ImageRegion* r : image.image()) {
    snapshot::RegionRecord record{};
    record.id = r->id;
    record.address = r->source.address;
    record.bytes = r->source.bytes;
    record.pre_offset = r->pre_offset;
    record.flags = r->unsaved.empty() ? snapshot::kSaved : 0u;
    writer.add(record, snapshot::RecordType::region);
  }
  writer.commit();
}

// What the capture says that the memory held before and after.
bool holds(const snapshot::CaptureReader& reader, const Memory& memory,
           const std::vector<unsigned char>& before, const unsigned char* after) {
  for (const snapshot::Region& r : reader.regions) {
    if (r.record.address != memory.address()) continue;
    std::vector<unsigned char> bytes(r.record.bytes);
    reader.read(snapshot::MemoryFile::pre, r.record.pre_offset, bytes.size(), bytes.data());
    if (bytes != before) return false;
    for (const snapshot::ChangeRecord& change : reader.changes) {
      if (change.region != r.record.id) continue;
      reader.read(snapshot::MemoryFile::post, change.post_offset, change.bytes,
                  bytes.data() + (change.address - r.record.address));
    }
    return std::memcmp(bytes.data(), after, bytes.size()) == 0;
  }
  return false;
}

std::vector<unsigned char> contents(Memory& memory) {
  return {memory.data(), memory.data() + memory.bytes()};
}

}  // namespace

TEST(pointers_are_found_at_any_argument_alignment) {
  const PointerScan scan({{0x1000, 0x2000}, {0x3000, 0x3001}, {0x7000, 0x9000}});
  EXPECT_EQ(scan.find(0xfff), PointerScan::npos);
  EXPECT_EQ(scan.find(0x1fff), std::size_t{0});
  EXPECT_EQ(scan.find(0x2000), PointerScan::npos);
  EXPECT_EQ(scan.find(0x3000), std::size_t{1});
  EXPECT_EQ(scan.find(0x8fff), std::size_t{2});
  std::vector<unsigned char> bytes(36);
  const std::uint64_t pointer = 0x8000;
  std::memcpy(bytes.data() + 12, &pointer, 8);
  PointerScan::Seen seen;
  std::vector<std::size_t> hits;
  const auto collect = [&](std::size_t i) { hits.push_back(i); };
  scan.scan(bytes.data(), bytes.size(), 8, seen, collect);
  EXPECT(hits.empty());
  scan.scan(bytes.data(), bytes.size(), 4, seen, collect);
  EXPECT(hits == std::vector<std::size_t>{2});
}

TEST(changes_are_whole_granules_and_bounded_in_number) {
  std::vector<unsigned char> before(kMiB), after(kMiB);
  after[0] = 1, after[130] = 1, after[kMiB - 1] = 1;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  const auto collect = [&](std::uint64_t at, std::uint64_t n) { runs.emplace_back(at, n); };
  find_changes(before.data(), after.data(), kMiB, collect);
  EXPECT((runs == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 64}, {128, 64}, {kMiB - 64, 64}}));
  for (std::size_t i = 0; i < kMiB; i += 128) after[i] = 7;  // every other granule
  runs.clear();
  find_changes(before.data(), after.data(), kMiB, collect);
  EXPECT(runs.size() <= kManyRuns + 2);
  runs.clear();
  find_changes(before.data(), after.data(), 100, collect);  // a length that is no multiple
  EXPECT((runs == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 64}}));
}

TEST(the_closure_follows_tables_structures_and_lists) {
  api().core.hsa_memory_copy_fn = &copy;
  const test::Scratch scratch;
  // arguments -> table -> node -> ... -> node; `apart` is pointed to by nothing.
  Memory table(3 * kMiB + 4096), big(5 * kMiB + 123), apart(kMiB);
  std::vector<std::unique_ptr<Memory>> nodes;
  for (int i = 0; i < 200; ++i) nodes.push_back(std::make_unique<Memory>(4096));
  std::memset(big.data(), 0x5a, big.bytes());
  table.word(3 * kMiB / 8) = nodes[0]->address() + 100;  // into its inside, from the last page
  for (int i = 0; i + 1 < 200; ++i) nodes[i]->word(5) = nodes[i + 1]->address();
  nodes[199]->word(511) = big.address() + big.bytes() - 1;
  apart.word(0) = table.address();
  std::vector<ImageRegion> regions{region(table), region(big), region(apart)};
  for (const auto& node : nodes) regions.push_back(region(*node));
  Progress progress;
  MemoryImage image(sorted(regions), live::MemoryMode::reachable, no_pool, progress.callbacks());
  image.add_roots(arguments({1, table.address() + 8, 3}), 0);
  const std::vector<unsigned char> big_before = contents(big), table_before = contents(table);
  {
    snapshot::CaptureWriter writer(scratch / "out");
    image.save_before(writer);
    EXPECT_EQ(image.image().size(), std::size_t{202});
    EXPECT_EQ(image.reachable_bytes(), table.bytes() + big.bytes() + 200 * 4096);
    big.data()[0] = 1;
    big.data()[kMiB - 1] = 2, big.data()[kMiB] = 3;
    big.data()[big.bytes() - 1] = 4;
    nodes[7]->word(9) = 77;
    image.save_changes(writer);
    finish(writer, image);
  }
  const snapshot::CaptureReader reader(scratch / "out");
  EXPECT(holds(reader, big, big_before, big.data()));
  EXPECT(holds(reader, table, table_before, table.data()));
  std::uint64_t changed = 0;
  for (const auto& change : reader.changes) changed += change.bytes;
  EXPECT(changed <= 5 * 64 + 64);
  EXPECT_EQ(progress.done.load(), reader.pre_bytes);
}

TEST(all_memory_is_saved_on_demand_and_says_what_was_reachable) {
  api().core.hsa_memory_copy_fn = &copy;
  const test::Scratch scratch;
  Memory used(8192), unused(3 * kMiB), refused(4096);
  std::memset(unused.data(), 1, unused.bytes());
  std::vector<ImageRegion> regions{region(used), region(unused), region(refused)};
  regions[2].source.refusal = "memory of another process";
  Progress progress;
  MemoryImage image(sorted(regions), live::MemoryMode::all, no_pool, progress.callbacks());
  image.add_roots(arguments({used.address()}), 0);
  snapshot::CaptureWriter writer(scratch / "out");
  image.save_before(writer);
  EXPECT_EQ(image.image().size(), std::size_t{3});
  EXPECT_EQ(image.reachable_bytes(), std::uint64_t{8192});
  for (const ImageRegion* r : image.image()) {
    EXPECT_EQ(r->reachable, r->source.address == used.address());
    EXPECT_EQ(r->unsaved.empty(), r->source.address != refused.address());
  }
}

TEST(memory_that_cannot_be_read_refuses_the_capture) {
  api().core.hsa_memory_copy_fn = &copy;
  const test::Scratch scratch;
  Memory first(4096), second(2 * kMiB);
  first.word(0) = second.address();
  unreadable = second.data() + kMiB + 7;
  Progress progress;
  MemoryImage image(sorted({region(first), region(second)}), live::MemoryMode::reachable, no_pool,
                    progress.callbacks());
  image.add_roots(arguments({first.address()}), 0);
  {
    snapshot::CaptureWriter writer(scratch / "out");
    EXPECT_THROWS(image.save_before(writer), Refused, "cannot be captured");
  }
  unreadable = nullptr;
  // The program's own memory, which it has taken away behind the runtime's back.
  const Memory gone(8192);
  ImageRegion managed = region(gone);
  managed.source.kind = snapshot::RegionKind::managed;
  const std::uint64_t address = gone.address();
  ::mprotect(reinterpret_cast<void*>(address), 8192, PROT_NONE);
  MemoryImage stale({managed}, live::MemoryMode::reachable, no_pool, progress.callbacks());
  stale.add_roots(arguments({address}), 0);
  snapshot::CaptureWriter writer(scratch / "stale");
  EXPECT_THROWS(stale.save_before(writer), Refused, "no longer mapped");
}

TEST(a_cancel_stops_the_saving) {
  api().core.hsa_memory_copy_fn = &copy;
  const test::Scratch scratch;
  Memory memory(64 * kMiB);
  Progress progress;
  ImageProgress callbacks = progress.callbacks();
  callbacks.check = [] { throw Refused("cancelled"); };
  MemoryImage image({region(memory)}, live::MemoryMode::reachable, no_pool, callbacks);
  image.add_roots(arguments({memory.address()}), 0);
  snapshot::CaptureWriter writer(scratch / "out");
  EXPECT_THROWS(image.save_before(writer), Refused, "cancelled");
}
