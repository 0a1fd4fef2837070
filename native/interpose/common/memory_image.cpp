#include "interpose/common/memory_image.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "interpose/common/change_finder.h"
#include "interpose/common/pointer_scan.h"
#include "snapshot/error.h"
#include "snapshot/xxh64.h"

namespace kerncap::interpose {

using live::MemoryMode;
using snapshot::kChecksumBlock;
using snapshot::kRegionAlign;

namespace {

// A part of one region in one block of memory.pre.
struct Piece {
  std::uint32_t region;  // index
  std::uint64_t region_offset;
  std::uint64_t block_offset;
  std::uint64_t bytes;
};

struct Block {
  std::uint64_t index = 0;
  std::uint64_t bytes = 0;
  std::vector<Piece> pieces;
};

std::vector<AddressRange> ranges_of(const std::vector<ImageRegion>& regions) {
  std::vector<AddressRange> ranges;
  ranges.reserve(regions.size());
  for (const ImageRegion& region : regions) ranges.push_back({region.source.address, region.source.end()});
  return ranges;
}

std::string describe(const ImageRegion& region) {
  char address[24];
  std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(region.source.address));
  return "the " + std::to_string(region.source.bytes) + " bytes at " + address;
}

}  // namespace

struct MemoryImage::Work {
  Work(std::vector<ImageRegion> all, MemoryMode mode_wanted, ImageMemory& of_device, ImageProgress reporting)
      : regions(std::move(all)),
        scan(ranges_of(regions)),
        mode(mode_wanted),
        memory(of_device),
        progress(std::move(reporting)),
        targets(regions.size()) {}

  std::vector<ImageRegion> regions;  // by address
  const PointerScan scan;
  const MemoryMode mode;
  ImageMemory& memory;
  const ImageProgress progress;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::set<std::uint32_t>> targets;  // by region: which regions it points into
  std::vector<std::uint32_t> roots;
  std::vector<std::uint32_t> order;  // of the image: region indices in the order of their ids
  std::deque<Piece> waiting;         // not yet cut into blocks; block_offset unset
  std::uint64_t file_end = 0;        // of memory.pre, as assigned so far
  std::vector<Block> blocks;         // cut so far
  // By the file that they go to: whole blocks that no worker has taken yet; how many are being saved.
  std::vector<std::deque<std::uint64_t>> ready;
  std::vector<unsigned> busy;
  unsigned scanning = 0;  // workers that may still find regions
  std::exception_ptr failure;
  std::atomic<bool> stop{false};

  void enqueue(std::uint32_t region);
  void fill(Block& block);
  void cut(const snapshot::BlockFile& file);
  bool next_block(Block& block, const snapshot::BlockFile& file);
  void save_block(Block& block, unsigned char* buffer, PointerScan::Seen& seen, snapshot::BlockFile& file);
  void read_piece(const Piece& piece, unsigned char* out);
  void found(std::uint32_t from, std::size_t to);
  std::vector<ChangedRun> changes_in(const Block& block, unsigned char* now, const snapshot::BlockFile& file,
                                     std::vector<unsigned char>& before);
  void mark_reachable();
  void refuse_unsaved();
  void fail();
  template <typename Body>
  void in_workers(Body body);
};

MemoryImage::MemoryImage(std::vector<ImageRegion> regions, MemoryMode mode, ImageMemory& memory,
                         ImageProgress progress)
    : work_(std::make_unique<Work>(std::move(regions), mode, memory, std::move(progress))) {}

MemoryImage::~MemoryImage() = default;

// Gives the region its place in memory.pre. Under the mutex, or before the workers start.
void MemoryImage::Work::enqueue(std::uint32_t index) {
  ImageRegion& region = regions[index];
  if (region.id != 0) return;
  order.push_back(index);
  region.id = static_cast<std::uint32_t>(order.size());
  if (!region.source.refusal.empty()) {
    region.unsaved = region.source.refusal;
    return;
  }
  file_end = (file_end + kRegionAlign - 1) / kRegionAlign * kRegionAlign;
  region.pre_offset = file_end;
  file_end += region.source.bytes;
  waiting.push_back({index, 0, 0, region.source.bytes});
  progress.total->store(file_end, std::memory_order_relaxed);
}

void MemoryImage::add_roots(std::span<const unsigned char> kernargs, std::uint32_t code_object) {
  Work& w = *work_;
  PointerScan::Seen seen;
  w.scan.scan(kernargs.data(), kernargs.size(), 4, seen,
              [&](std::size_t index) { w.roots.push_back(static_cast<std::uint32_t>(index)); });
  for (std::uint32_t i = 0; i < w.regions.size(); ++i) {
    if (w.regions[i].code_object == code_object && code_object != 0) w.roots.push_back(i);
  }
  for (const std::uint32_t root : w.roots) w.enqueue(root);
  if (w.mode == MemoryMode::all) {
    for (std::uint32_t i = 0; i < w.regions.size(); ++i) {
      // Code that nothing points to stays out: its module would have to be loaded for it.
      if (w.regions[i].code_object == 0) w.enqueue(i);
    }
  }
}

// Moves what is waiting and lies in the block to it. Under the mutex.
void MemoryImage::Work::fill(Block& block) {
  const std::uint64_t begin = block.index * kChecksumBlock, end = begin + kChecksumBlock;
  while (!waiting.empty()) {
    Piece& piece = waiting.front();
    const std::uint64_t at = regions[piece.region].pre_offset + piece.region_offset;
    if (at >= end) break;
    const std::uint64_t take = std::min(piece.bytes, end - at);
    block.pieces.push_back({piece.region, piece.region_offset, at - begin, take});
    piece.region_offset += take, piece.bytes -= take;
    if (piece.bytes == 0) waiting.pop_front();
  }
  block.bytes = std::min(file_end - begin, kChecksumBlock);
}

// Makes blocks of what is waiting, as far as it fills whole ones. Under the mutex.
void MemoryImage::Work::cut(const snapshot::BlockFile& file) {
  for (;;) {
    const std::uint64_t index = blocks.size(), begin = index * kChecksumBlock;
    if (waiting.empty() || file_end < begin + kChecksumBlock) return;
    // What lies before `begin` is for the worker that has the block before, which is not full yet.
    if (regions[waiting.front().region].pre_offset + waiting.front().region_offset < begin) return;
    fill(blocks.emplace_back(Block{index, 0, {}}));
    ready[file.file_of(index)].push_back(index);
  }
}

// A whole block, of the file that fewest workers write to; or the last one. Waits while a worker may still
// find regions that belong into it. False: all is done.
bool MemoryImage::Work::next_block(Block& block, const snapshot::BlockFile& file) {
  std::unique_lock lock(mutex);
  for (;;) {
    if (stop.load()) return false;
    cut(file);
    const std::size_t none = ready.size();
    std::size_t best = none;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if (!ready[i].empty() && (best == none || busy[i] < busy[best])) best = i;
    }
    if (best == none && waiting.empty() && scanning == 0) {
      changed.notify_all();
      return false;
    }
    if (best != none) {
      block = blocks[ready[best].front()];
      ready[best].pop_front();
    } else if (scanning == 0) {
      block = {blocks.size(), 0, {}};
      fill(block);
      blocks.push_back(block);
    } else {
      changed.wait(lock);
      continue;
    }
    ++scanning;
    ++busy[file.file_of(block.index)];
    return true;
  }
}

void MemoryImage::Work::found(std::uint32_t from, std::size_t to) {
  const std::lock_guard lock(mutex);
  const auto target = static_cast<std::uint32_t>(to);
  targets[from].insert(target);
  if (mode == MemoryMode::reachable || regions[target].code_object != 0) {
    const bool fresh = regions[target].id == 0;
    enqueue(target);
    if (fresh) changed.notify_all();
  }
}

void MemoryImage::Work::read_piece(const Piece& piece, unsigned char* out) {
  ImageRegion& region = regions[piece.region];
  std::string why = memory.read(region.source, piece.region_offset, out, piece.bytes);
  if (why.empty()) return;
  std::memset(out, 0, piece.bytes);
  const std::lock_guard lock(mutex);
  if (region.unsaved.empty()) region.unsaved = std::move(why);
}

void MemoryImage::Work::save_block(Block& block, unsigned char* buffer, PointerScan::Seen& seen,
                                   snapshot::BlockFile& file) {
  std::uint64_t filled = 0;
  std::size_t scanned = 0;  // pieces
  for (;;) {
    for (std::size_t i = scanned; i < block.pieces.size(); ++i) {
      const Piece& piece = block.pieces[i];
      std::memset(buffer + filled, 0, piece.block_offset - filled);
      read_piece(piece, buffer + piece.block_offset);
      filled = piece.block_offset + piece.bytes;
    }
    for (; scanned < block.pieces.size(); ++scanned) {
      const Piece& piece = block.pieces[scanned];
      scan.scan(buffer + piece.block_offset, piece.bytes, 8, seen,
                [&](std::size_t to) { found(piece.region, to); });
    }
    const std::lock_guard lock(mutex);
    fill(block);  // the last block takes in what was found meanwhile
    if (scanned < block.pieces.size()) continue;
    blocks[block.index] = block;
    --scanning;
    changed.notify_all();
    break;
  }
  std::memset(buffer + filled, 0, block.bytes - filled);
  file.write_block(block.index, buffer, block.bytes, snapshot::xxh64(buffer, block.bytes));
  progress.done->fetch_add(block.bytes, std::memory_order_relaxed);
}

void MemoryImage::Work::fail() {
  const std::lock_guard lock(mutex);
  if (failure == nullptr) failure = std::current_exception();
  stop.store(true);
  changed.notify_all();
}

// Runs body(buffer) in each worker; throws what the first of them threw. The caller's thread watches for a
// cancel.
template <typename Body>
void MemoryImage::Work::in_workers(Body body) {
  failure = nullptr;
  stop.store(false);
  std::vector<std::thread> threads;
  std::atomic<unsigned> running{0};
  // The program's signals are for the program's threads; and one for a file that is too long is for nobody.
  sigset_t all, mask;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &mask);
  try {
    for (unsigned i = 0; i < memory.workers(); ++i) {
      running.fetch_add(1);
      threads.emplace_back([&] {
        try {
          const StagingPointer buffer = memory.staging(kChecksumBlock);
          body(buffer.get());
        } catch (...) {
          fail();
        }
        const std::lock_guard lock(mutex);
        running.fetch_sub(1);
        changed.notify_all();
      });
    }
  } catch (...) {
    running.fetch_sub(1);
    fail();
  }
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  while (running.load() != 0) {
    try {
      if (!stop.load()) progress.check();
    } catch (...) {
      fail();
    }
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::milliseconds(20), [&] { return running.load() == 0; });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure != nullptr) std::rethrow_exception(failure);
}

void MemoryImage::Work::mark_reachable() {
  std::vector<std::uint32_t> open = roots;
  while (!open.empty()) {
    const std::uint32_t index = open.back();
    open.pop_back();
    if (regions[index].reachable) continue;
    regions[index].reachable = true;
    open.insert(open.end(), targets[index].begin(), targets[index].end());
  }
}

void MemoryImage::Work::refuse_unsaved() {
  for (const ImageRegion& region : regions) {
    if (region.reachable && !region.unsaved.empty()) {
      throw Refused(describe(region) + ", which the kernel can reach, cannot be captured: " + region.unsaved);
    }
  }
}

void MemoryImage::save_before(snapshot::CaptureWriter& writer) {
  Work& w = *work_;
  w.ready.resize(writer.pre().files());
  w.busy.resize(writer.pre().files());
  w.in_workers([&](unsigned char* buffer) {
    PointerScan::Seen seen;
    Block block;
    while (w.next_block(block, writer.pre())) {
      w.save_block(block, buffer, seen, writer.pre());
      const std::lock_guard lock(w.mutex);
      --w.busy[writer.pre().file_of(block.index)];
    }
  });
  w.mark_reachable();
  w.refuse_unsaved();
}

// What one block's memory holds now, against what was saved of it. `now` is the worker's buffer.
std::vector<ChangedRun> MemoryImage::Work::changes_in(const Block& block, unsigned char* now,
                                                      const snapshot::BlockFile& file,
                                                      std::vector<unsigned char>& before) {
  std::uint64_t filled = 0;
  for (const Piece& piece : block.pieces) {
    std::memset(now + filled, 0, piece.block_offset - filled);
    filled = piece.block_offset + piece.bytes;
    const ImageRegion& region = regions[piece.region];
    if (!region.unsaved.empty()) {
      std::memset(now + piece.block_offset, 0, piece.bytes);
      continue;
    }
    const std::string why =
        memory.read(region.source, piece.region_offset, now + piece.block_offset, piece.bytes);
    if (!why.empty()) throw Refused(describe(region) + " cannot be read after the dispatch: " + why);
  }
  std::memset(now + filled, 0, block.bytes - filled);
  std::vector<ChangedRun> runs;
  // Most blocks do not change, and hashing costs less than reading the saved bytes again.
  if (snapshot::xxh64(now, block.bytes) == file.checksums()[block.index]) return runs;
  before.resize(kChecksumBlock);
  file.read_back(block.index * kChecksumBlock, before.data(), block.bytes);
  for (const Piece& piece : block.pieces) {
    const ImageRegion& region = regions[piece.region];
    const std::uint64_t address = region.source.address + piece.region_offset;
    const unsigned char* after = now + piece.block_offset;
    find_changes(before.data() + piece.block_offset, after, piece.bytes,
                 [&](std::uint64_t offset, std::uint64_t bytes) {
                   runs.push_back({piece.region, region.id, address + offset, after + offset, bytes});
                 });
  }
  return runs;
}

void MemoryImage::save_changes(snapshot::CaptureWriter& writer) {
  Work& w = *work_;
  w.progress.done->store(0);
  std::atomic<std::uint64_t> next{0};
  std::uint64_t turn = 0;  // whose changes are appended next
  ChangeWriter changes(writer);
  w.in_workers([&](unsigned char* buffer) {
    std::vector<unsigned char> before;
    for (;;) {
      const std::uint64_t n = next.fetch_add(1);
      if (n >= w.blocks.size() || w.stop.load()) return;
      const std::vector<ChangedRun> runs = w.changes_in(w.blocks[n], buffer, writer.pre(), before);
      std::unique_lock lock(w.mutex);
      w.changed.wait(lock, [&] { return turn == n || w.stop.load(); });
      if (w.stop.load()) return;
      lock.unlock();
      for (const ChangedRun& run : runs) {
        w.regions[run.region].written = true;
        changes.append(run);
      }
      lock.lock();
      turn = n + 1;
      w.changed.notify_all();
      w.progress.done->fetch_add(w.blocks[n].bytes, std::memory_order_relaxed);
    }
  });
  changes.finish();
}

std::vector<const ImageRegion*> MemoryImage::image() const {
  std::vector<const ImageRegion*> list;
  list.reserve(work_->order.size());
  for (const std::uint32_t index : work_->order) list.push_back(&work_->regions[index]);
  return list;
}

std::uint64_t MemoryImage::reachable_bytes() const {
  std::uint64_t bytes = 0;
  for (const ImageRegion& region : work_->regions) {
    if (region.reachable) bytes += region.source.bytes;
  }
  return bytes;
}

}  // namespace kerncap::interpose
