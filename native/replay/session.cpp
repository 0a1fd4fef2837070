#include "replay/session.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>

#include "replay/error.h"
#include "replay/parallel.h"
#include "snapshot/error.h"
#include "snapshot/xxh64.h"

namespace kerncap::replay {
namespace {

constexpr std::uint64_t kCopyGap = 4096;  // written ranges this close are restored with one copy

std::vector<unsigned char> read_variant(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int error = errno;
    throw ReplayError(snapshot::is_shortage(error) ? ErrorClass::device : ErrorClass::usage,
                      path + " cannot be read: " + std::strerror(error));
  }
  return std::vector<unsigned char>(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Session::Session(const snapshot::CaptureReader& capture, ReplayMemory& memory, Reservation& reservation,
                 const std::string& runtime_path, int device_index, bool track_writes, bool timestamps)
    : capture_(capture), memory_(memory), reservation_(reservation), runtime_(runtime_path) {
  const auto start = std::chrono::steady_clock::now();
  if (!track_writes) runtime_.sim.take_written = nullptr;
  agent_ = runtime_.pick(capture.agent_name, device_index);
  memory_.place(runtime_, agent_, reservation_, runtime_.host_can_touch_device() && track_writes);
  memory_.fill();
  launcher_ = std::make_unique<Launcher>(runtime_, agent_,
                                         (capture.dispatch.flags & snapshot::kCooperative) != 0, timestamps);
  shadow_ = std::make_unique<DeviceShadow>(runtime_, agent_);
  for (const snapshot::ChangeRecord& change : capture.changes) {
    application_.push_back({change.address, change.bytes, memory_.after_bytes(change)});
  }
  std::sort(application_.begin(), application_.end(),
            [](const Overlay& a, const Overlay& b) { return a.address < b.address; });
  restore_seconds_ = seconds_since(start);
}

Session::Variant& Session::at(unsigned variant) {
  if (variant < variants_.size()) return variants_[variant];
  throw ReplayError(ErrorClass::usage, "there is no variant " + std::to_string(variant) + "; " +
                                           std::to_string(variants_.size()) + " are loaded");
}

std::unique_ptr<Module> Session::load_module(std::string name, std::vector<unsigned char> content,
                                             const std::string& symbol) {
  const auto& captured = capture_.code_object(capture_.dispatch.code_object).record;
  const bool same = content.size() == captured.content_bytes &&
                    snapshot::xxh64(content.data(), content.size()) == captured.content_hash;
  std::uint64_t wanted = 0;
  if (same && !code_placed_ && runtime_.sim.place_next != nullptr) {
    const Range range = whole_pages({captured.load_base, captured.load_bytes});
    if (reservation_.release(range)) wanted = captured.load_base;
  }
  auto module =
      std::make_unique<Module>(runtime_, agent_, std::move(name), std::move(content), symbol, wanted);
  code_placed_ = code_placed_ || module->base() == captured.load_base;
  module->bind_data(capture_, memory_, same);
  return module;
}

namespace {

// Another grid of workgroups along x. Throws ReplayError where a packet cannot hold it.
void reshape(Launch& launch, const Shape& shape, const std::string& name) {
  std::uint32_t sizes[3];
  for (int axis = 0; axis < 3; ++axis) {
    const std::uint64_t size = shape.groups[axis] * (axis == 0 ? shape.items : 1);
    if (size == 0 || size > 0xffffffffu || shape.items > 0xffffu)
      throw ReplayError(ErrorClass::usage, name + ": no dispatch has so large a grid, or an empty one");
    sizes[axis] = static_cast<std::uint32_t>(size);
  }
  abi::hsa_kernel_dispatch_packet_t& packet = launch.packet;
  packet.setup = 3;  // dimensions
  packet.workgroup_size_x = static_cast<std::uint16_t>(shape.items);
  packet.workgroup_size_y = packet.workgroup_size_z = 1;
  packet.grid_size_x = sizes[0], packet.grid_size_y = sizes[1], packet.grid_size_z = sizes[2];
  launch.reshaped = true;
  launch.cluster = static_cast<std::uint32_t>(std::min<std::uint64_t>(shape.cluster, 0xffff));
}

}  // namespace

unsigned Session::load(const std::string& file, const std::string& symbol, std::uint32_t private_bytes,
                       std::uint32_t group_bytes, const std::vector<unsigned char>& kernargs,
                       const std::optional<Shape>& shape) {
  return add(load_module(file, read_variant(file), symbol), private_bytes, group_bytes, kernargs, shape);
}

unsigned Session::load_empty() {
  const snapshot::CodeObject& captured = capture_.code_object(capture_.dispatch.code_object);
  auto content = emptied(capture_.read_code_object(captured), capture_.symbol, agent_.name);
  const auto* packet = reinterpret_cast<const abi::hsa_kernel_dispatch_packet_t*>(capture_.dispatch.packet);
  return add(load_module("the emptied kernel", std::move(content), capture_.symbol),
             packet->private_segment_size, packet->group_segment_size, {});
}

unsigned Session::add(std::unique_ptr<Module> module, std::uint32_t private_bytes, std::uint32_t group_bytes,
                      const std::vector<unsigned char>& kernargs, const std::optional<Shape>& shape) {
  const std::uint64_t given = kernargs.empty() ? capture_.kernarg_bytes.size() : kernargs.size();
  if (module->kernarg_bytes() > given) {
    throw ReplayError(ErrorClass::usage,
                      module->name() + " takes " + std::to_string(module->kernarg_bytes()) +
                          " bytes of arguments; the captured dispatch passed " + std::to_string(given));
  }
  if (agent_.lds_bytes != 0 && group_bytes > agent_.lds_bytes) {
    throw ReplayError(ErrorClass::usage, module->name() + " needs " + std::to_string(group_bytes) +
                                             kGroupMemory + agent_.name + " has " +
                                             std::to_string(agent_.lds_bytes));
  }
  Variant variant;
  std::memcpy(&variant.launch.packet, capture_.dispatch.packet, sizeof(variant.launch.packet));
  if (shape) reshape(variant.launch, *shape, module->name());
  variant.launch.packet.kernel_object = module->kernel_object();
  variant.launch.packet.private_segment_size = private_bytes;
  variant.launch.packet.group_segment_size = group_bytes;
  variant.module = std::move(module);
  restore_module(*variant.module);
  place_kernargs(variant, kernargs);
  complete_launch(variant.launch, capture_, *variant.module);
  variants_.push_back(std::move(variant));
  return static_cast<unsigned>(variants_.size() - 1);
}

void Session::place_kernargs(Variant& variant, const std::vector<unsigned char>& kernargs) {
  const std::uint64_t address = capture_.kernarg.address;
  const std::uint64_t bytes = capture_.kernarg_bytes.size();
  for (const Piece& piece : memory_.pieces()) {
    const bool holds = piece.captured <= address && address + bytes <= piece.end();
    if (!holds || !kernargs.empty()) continue;
    if (std::memcmp(piece.before + (address - piece.captured), capture_.kernarg_bytes.data(), bytes) != 0)
      break;
    variant.launch.packet.kernarg_address = reinterpret_cast<void*>(address);
    return;
  }
  const std::vector<unsigned char>& content = kernargs.empty() ? capture_.kernarg_bytes : kernargs;
  variant.kernargs = runtime_.kernarg_memory(agent_, std::max<std::size_t>(content.size(), 64));
  variant.kernarg_bytes = content.size();
  if (!content.empty()) std::memcpy(variant.kernargs, content.data(), content.size());
  variant.launch.packet.kernarg_address = variant.kernargs;
}

std::vector<DispatchTime> Session::dispatch(Variant& variant, std::uint64_t count, bool track,
                                            double limit_seconds) {
  variant.launch.limit_seconds = limit_seconds;
  const bool tracked = track && launcher_->can_track_writes();
  launcher_->track_writes(tracked);
  std::vector<DispatchTime> times;
  try {
    times = launcher_->run(variant.launch, count);
  } catch (const ReplayError& error) {
    if (error.kind() != ErrorClass::fault || error.address() == 0) throw;
    throw ReplayError(
        error.kind(),
        std::string(error.what()) + "\nThe address is " + memory_.describe(error.address()) + ".",
        error.address());
  }
  if (tracked) {
    variant.written = to_captured(*variant.module, launcher_->take_written());
    dirty_.unite(variant.written);
    variant.learned.unite(variant.written);
    variant.knows = true;
  } else if (variant.knows) {
    dirty_.unite(variant.learned);
  } else {
    dirty_unknown_ = true;
  }
  return times;
}

void Session::learn(Variant& variant) {
  if (variant.knows) return;
  restore(false);
  if (launcher_->can_track_writes()) {
    dispatch(variant, 1, true, variant.launch.limit_seconds);
    return;
  }
  dispatch(variant, 1, false, variant.launch.limit_seconds);
  variant.learned = changed_blocks();
  variant.learned.unite(written_set());
  variant.knows = true;
  dirty_.unite(variant.learned);
  dirty_unknown_ = false;
}

RangeSet Session::changed_blocks() {
  constexpr std::uint64_t kBlock = 4096;
  Comparer comparer(memory_, "", 0);
  std::vector<Expectation> before;
  for (const Piece& piece : memory_.pieces()) before.push_back({piece, piece.before, nullptr});
  std::vector<Range> blocks;
  for (const DiffRun& run : comparer.compare(before, nullptr).runs) {
    const std::uint64_t base = run.address / kBlock * kBlock;
    blocks.push_back({base, (run.address + run.bytes + kBlock - 1) / kBlock * kBlock - base});
  }
  return RangeSet(std::move(blocks));
}

std::vector<DispatchTime> Session::run(const RunRequest& request) {
  Variant& variant = at(request.variant);
  variant.launch.limit_seconds = request.limit_seconds;
  const bool tracks = request.track && launcher_->can_track_writes();
  if (request.restore && !tracks) learn(variant);
  if (request.restore && !memory_.touchable()) {
    restore(false);
    shadow_->keep(restorable(variant));
  }
  std::vector<DispatchTime> times;
  for (std::uint64_t i = 0; i < request.count; ++i) {
    if (request.restore) restore(false);
    if (request.cold && !memory_.touchable()) {  // what the host may touch is simulated, and has no caches
      launcher_->flush_caches(std::max<std::uint64_t>(2 * agent_.cache_bytes, 256u << 20));
    }
    launcher_->settle();
    // What a dispatch stored to is known of each alone.
    const std::uint64_t together = tracks ? 1 : request.batch;
    for (std::uint64_t k = 0; k < request.batch; k += together) {
      const auto more = dispatch(variant, together, request.track, request.limit_seconds);
      times.insert(times.end(), more.begin(), more.end());
    }
  }
  return times;
}

RangeSet Session::to_captured(const Module& module, const RangeSet& live) const {
  RangeSet out = live;
  for (const Piece& piece : module.pieces()) {
    if (piece.live == piece.captured) continue;
    const RangeSet here = out.intersect(RangeSet({{piece.live, piece.bytes}}));
    if (here.empty()) continue;
    out = out.minus(here);
    std::vector<Range> moved;
    for (const Range& range : here) {
      moved.push_back({range.base - piece.live + piece.captured, range.bytes});
    }
    out.unite(RangeSet(std::move(moved)));
  }
  return out;
}

void Session::restore_ranges(const RangeSet& ranges) {
  const auto& pieces = memory_.pieces();
  for (const Range& range : ranges.coarsen(kCopyGap)) {
    auto piece = std::upper_bound(pieces.begin(), pieces.end(), range.base,
                                  [](std::uint64_t at, const Piece& p) { return at < p.end(); });
    for (; piece != pieces.end() && piece->captured < range.end(); ++piece) {
      const std::uint64_t lo = std::max(range.base, piece->captured),
                          hi = std::min(range.end(), piece->end());
      const std::uint64_t offset = lo - piece->captured;
      if (lo >= hi || shadow_->restore(piece->live + offset, hi - lo)) continue;
      memory_.write(piece->live + offset, piece->before + offset, hi - lo);
    }
  }
}

RangeSet Session::restorable(const Variant& variant) const {
  std::vector<Range> pieces;
  for (const Piece& piece : memory_.pieces()) pieces.push_back({piece.captured, piece.bytes});
  return variant.learned.coarsen(kCopyGap).intersect(RangeSet(std::move(pieces)));
}

void Session::restore_module(const Module& module) {
  std::vector<unsigned char> now;
  for (const Piece& piece : module.pieces()) {
    now.resize(piece.bytes);
    memory_.read(piece.live, now.data(), piece.bytes);
    // Read-only segments are as loaded already, and need not be writable.
    if (std::memcmp(now.data(), piece.before, piece.bytes) == 0) continue;
    memory_.write(piece.live, piece.before, piece.bytes);
  }
}

void Session::restore(bool full) {
  if (full || dirty_unknown_) {
    dirty_.unite(changed_blocks());
    for (const Range& range : memory_.slack()) {
      memory_.fill_with(range.base, ReplayMemory::kCanary, range.bytes);
    }
  }
  restore_ranges(dirty_);
  for (const Variant& variant : variants_) restore_module(*variant.module);
  for (const Range& range : dirty_.intersect(RangeSet(memory_.slack()))) {
    memory_.fill_with(range.base, ReplayMemory::kCanary, range.bytes);
  }
  dirty_.clear();
  dirty_unknown_ = false;
}

std::vector<Expectation> Session::expectations(Against against, unsigned variant) const {
  std::vector<Expectation> out;
  const bool application = against == Against::application;
  for (const Piece& piece : memory_.pieces()) {
    out.push_back({piece, piece.before, application ? &application_ : &reference_});
  }
  const Module& module = *at(variant).module;
  for (std::size_t i = 0; i < module.pieces().size(); ++i) {
    const Piece& piece = module.pieces()[i];
    out.push_back({piece, application ? module.after(i) : piece.before, application ? nullptr : &reference_});
  }
  return out;
}

CompareResult Session::compare(Against against, bool written_only, const std::string& data_path,
                               std::uint64_t limit, unsigned variant) {
  Comparer comparer(memory_, data_path, limit);
  const RangeSet scope = written_set();
  return comparer.compare(expectations(against, variant), written_only ? &scope : nullptr);
}

void Session::allow(unsigned variant) { allowed_.unite(at(variant).written); }

RangeSet Session::written_set() const {
  if (!allowed_.empty()) return allowed_;
  std::vector<Range> changed;
  for (const Overlay& overlay : application_) changed.push_back({overlay.address, overlay.bytes});
  return RangeSet(std::move(changed));
}

RangeSet Session::region_range(std::uint32_t id) const {
  for (const snapshot::Region& region : capture_.regions) {
    if (region.record.id == id) return RangeSet({{region.record.address, region.record.bytes}});
  }
  throw ReplayError(ErrorClass::usage, "there is no region " + std::to_string(id));
}

void Session::schedule(std::uint64_t seed) {
  if (runtime_.sim.schedule != nullptr) runtime_.sim.schedule(seed);
}

}  // namespace kerncap::replay
