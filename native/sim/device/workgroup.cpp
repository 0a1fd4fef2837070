#include "sim/device/workgroup.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace kerncap::sim {

namespace {

// The V# of private memory as the runtime of gfx9 makes it: dwords of 64 lanes side by side, by the lane's
// number (CDNA2 ISA document, "Buffer Resource Descriptor").
void private_segment_buffer(std::uint32_t* v, std::uint64_t bytes) {
  constexpr std::uint32_t kSwizzle = 1u << 31, kSelectXyzw = 4u | 5u << 3 | 6u << 6 | 7u << 9,
                          kUint = 4u << 12, kFormat32 = 4u << 15, kElement4 = 1u << 19,
                          kIndexStride64 = 3u << 21, kAddTid = 1u << 23;
  v[0] = static_cast<std::uint32_t>(isa::kScratchWindow);
  v[1] = static_cast<std::uint32_t>(isa::kScratchWindow >> 32) | kSwizzle;
  v[2] = static_cast<std::uint32_t>(bytes);
  v[3] = kSelectXyzw | kUint | kFormat32 | kElement4 | kIndexStride64 | kAddTid;
}

}  // namespace

LazyMemory::LazyMemory(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::uint8_t*>(p);
}
LazyMemory::~LazyMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}
LazyMemory::LazyMemory(LazyMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
void LazyMemory::clear(std::size_t bytes) {
  // Beyond this, giving the pages back is cheaper than writing those that nobody touched.
  constexpr std::size_t kLarge = 1u << 20;
  if (bytes >= kLarge && bytes == size_ && madvise(data_, size_, MADV_DONTNEED) == 0) return;
  if (bytes != 0) std::memset(data_, 0, bytes);
}
LazyMemory& LazyMemory::operator=(LazyMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void Workgroup::start(const DispatchInfo& dispatch, std::uint64_t index, const isa::Inst* entry,
                      MemoryPort* memory, isa::Surroundings* around, const isa::CostTable* costs) {
  index_ = index;
  executed_ = 0;
  current_ = 0;
  id_[0] = static_cast<std::uint32_t>(index % dispatch.groups[0]);
  id_[1] = static_cast<std::uint32_t>(index / dispatch.groups[0] % dispatch.groups[1]);
  id_[2] = static_cast<std::uint32_t>(index / dispatch.groups[0] / dispatch.groups[1]);
  for (unsigned n = 0; n < 3; ++n)
    size_[n] = std::min(dispatch.workgroup_size[n], dispatch.grid[n] - id_[n] * dispatch.workgroup_size[n]);
  count_ = (size_[0] * size_[1] * size_[2] + 63) / 64;

  while (waves_.size() < count_) {
    registers_.emplace_back(isa::kVgprFile * sizeof(isa::Reg));
    waves_.push_back(std::make_unique<isa::Wave>());
  }
  // LDS, private memory and registers start as zeros: undefined on the device, but the same on every run
  // here.
  const std::size_t lds = dispatch.lds_bytes;
  if (lds_.size() < lds)
    lds_ = LazyMemory(lds);
  else
    lds_.clear(lds);
  const std::size_t scratch_wave = static_cast<std::size_t>(dispatch.private_bytes) * isa::kLanes;
  if (scratch_.size() < scratch_wave * count_)
    scratch_ = LazyMemory(scratch_wave * count_);
  else
    scratch_.clear(scratch_wave * count_);

  for (unsigned n = 0; n < count_; ++n) {
    isa::Wave& w = *waves_[n];
    w = isa::Wave{};
    w.v = reinterpret_cast<isa::Reg*>(registers_[n].data());
    w.lds = lds_.data();
    w.lds_bytes = dispatch.lds_bytes;
    w.scratch = scratch_.data() + n * scratch_wave;
    w.scratch_lane_bytes = dispatch.private_bytes;
    w.memory = memory;
    w.around = around;
    w.costs = costs;
    start_wave(dispatch, n, entry);
  }
}

void Workgroup::start_wave(const DispatchInfo& dispatch, unsigned n, const isa::Inst* entry) {
  isa::Wave& w = *waves_[n];
  const KernelDescriptor& kernel = dispatch.kernel;
  w.index = n;
  std::copy(std::begin(id_), std::end(id_), std::begin(w.workgroup));
  w.vgprs = kernel.vgprs();
  w.accum_offset = kernel.accum_offset();
  const unsigned arch_vgprs = std::min(w.vgprs, std::min(w.accum_offset, isa::kAgpr0));
  const unsigned acc_vgprs = std::min(w.vgprs - arch_vgprs, isa::kAgpr0);
  std::memset(w.v, 0, arch_vgprs * sizeof(isa::Reg));
  std::memset(w.v + isa::kAgpr0, 0, acc_vgprs * sizeof(isa::Reg));

  const unsigned items = size_[0] * size_[1] * size_[2], first = n * 64;
  const unsigned active = std::min(items - first, 64u);
  w.set_exec(active == 64 ? ~0ull : (1ull << active) - 1);
  for (unsigned l = 0; l < active; ++l) {
    const unsigned item = first + l;
    w.v[0].lane[l] =
        item % size_[0] | (item / size_[0] % size_[1]) << 10 | (item / size_[0] / size_[1]) << 20;
  }

  // User SGPRs, in the order of the descriptor's property bits.
  unsigned s = 0;
  const auto pair = [&](unsigned bit, std::uint64_t value) {
    if ((kernel.properties >> bit & 1u) == 0) return;
    w.set_s64(s, value);
    s += 2;
  };
  // gfx90a's code finds private memory by these; gfx942 has it in its architecture.
  const bool architected = dispatch.arch != Arch::gfx90a;
  const std::uint64_t wave_bytes = static_cast<std::uint64_t>(dispatch.private_bytes) * isa::kLanes;
  if ((kernel.properties & 1u) != 0) {
    if (!architected) private_segment_buffer(&w.s[s], wave_bytes * count_);
    s += 4;
  }
  pair(1, dispatch.packet_address);
  pair(2, dispatch.queue_address);
  pair(3, dispatch.kernarg);
  pair(4, dispatch.dispatch_id);
  pair(5, architected ? 0 : isa::kScratchWindow);  // flat scratch init
  if ((kernel.properties >> 6 & 1u) != 0) w.s[s++] = dispatch.private_bytes;
  for (unsigned i = 0; i < kernel.preloaded; ++i) w.s[s++] = kernel.arguments[i];

  // System SGPRs come after the descriptor's count of user SGPRs, used or not.
  s = kernel.user_sgprs();
  for (unsigned d = 0; d < 3; ++d)
    if ((kernel.rsrc2 >> (7 + d) & 1u) != 0) w.s[s++] = id_[d];
  if ((kernel.rsrc2 >> 10 & 1u) != 0) w.s[s++] = n == 0 ? 1u << 31 : 0;  // workgroup info
  if ((kernel.rsrc2 & 1u) != 0 && !architected)
    w.s[s++] = static_cast<std::uint32_t>(n * wave_bytes);  // private segment wave offset

  w.mode = kernel.mode();
  w.update_special_mode();
  w.hw_id =
      (n & 3u) << 4 | (n >> 2 & 15u) | (index_ % 40) << 8 | static_cast<std::uint64_t>(index_ % 8) << 32;
  w.pc = entry;
}

bool Workgroup::release_barrier() {
  std::uint64_t latest = 0;
  bool any = false;
  for (unsigned n = 0; n < count_; ++n) {
    const isa::Wave& w = *waves_[n];
    if (w.state == isa::Wave::State::done) continue;  // a wave that ended is not waited for
    if (w.state != isa::Wave::State::at_barrier) return false;
    any = true;
    latest = std::max(latest, w.time.now);
  }
  if (!any) return false;
  for (unsigned n = 0; n < count_; ++n) {
    isa::Wave& w = *waves_[n];
    if (w.state != isa::Wave::State::at_barrier) continue;
    w.state = isa::Wave::State::running;
    w.time.now = latest;
  }
  return true;
}

Workgroup::Progress Workgroup::advance(const isa::HandlerSet& handlers, std::int64_t slice) {
  bool waiting = true, all_done = true;
  for (unsigned n = 0; n < count_; ++n) {
    isa::Wave& w = *waves_[n];
    if (w.state == isa::Wave::State::done) continue;
    all_done = false;
    if (w.state != isa::Wave::State::running) continue;
    current_ = n;
    w.budget = slice;
    w.unspent = 0;
    try {
      handlers.run(w);
    } catch (...) {
      executed_ += static_cast<std::uint64_t>(slice - w.budget - w.unspent);
      throw;
    }
    executed_ += static_cast<std::uint64_t>(slice - w.budget - w.unspent);
    // Only a wave that slept, unchanged in state and with most of its slice left, says that it waits.
    const bool slept = w.state == isa::Wave::State::running && w.unspent > 0;
    if (!slept) waiting = false;
  }
  if (all_done) return Progress::finished;
  if (release_barrier()) return Progress::advanced;
  for (unsigned n = 0; n < count_; ++n)
    if (waves_[n]->state != isa::Wave::State::done) return waiting ? Progress::waiting : Progress::advanced;
  return Progress::finished;
}

}  // namespace kerncap::sim
