#include "sim/device/executor.h"

#include <cxxabi.h>

#include <cstdlib>
#include <numeric>

namespace kerncap::sim {
namespace {

// Wave-instructions a wave runs before the next one of its workgroup has its turn.
constexpr std::int64_t kSlice = 16384;
// Wave-instructions of a workgroup before others are begun beside it: it may wait for one that has not
// started. Each time their number doubles, so that a barrier of a whole grid needs few such rounds.
constexpr std::uint64_t kPatience = 1u << 18;
// Workgroups begun and not ended on one host thread.
constexpr std::size_t kMaxResident = 4096;

std::string demangled(const std::string& symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 && text != nullptr ? text : symbol;
  std::free(text);
  return out;
}

}  // namespace

// What one host thread needs to run workgroups of the dispatch.
class Executor::Thread final : public isa::Surroundings {
 public:
  explicit Thread(Executor& owner)
      : memory(owner.memory_),
        time(isa::cost_table(owner.config_.arch), owner.config_.compute_units, owner.total_),
        owner_(owner) {
    if (owner.log_writes_) memory.log = &writes;
  }
  const isa::Inst* code_at(std::uint64_t address) override {
    for (const auto& program : programs_)
      if (address >= program->base() && address < program->end())
        if (const isa::Inst* inst = program->at(address)) return inst;
    CodeMap::Place place = owner_.code_.find(address);
    if (place.inst == nullptr) {
      char text[64];
      std::snprintf(text, sizeof text, "a jump to 0x%llx", static_cast<unsigned long long>(address));
      throw isa::Trouble{Fault::Kind::illegal_instruction, -1, 0, 0,
                         std::string(text) + ", where no code is loaded"};
    }
    programs_.insert(programs_.begin(), place.program);
    return place.inst;
  }
  std::uint64_t address_of(const isa::Inst& inst) override {
    for (const auto& program : programs_)
      if (program->owns(inst)) return program->address_of(inst);
    return 0;
  }
  GlobalWaveSync& wave_sync() override { return owner_.wave_sync_; }

  MemoryPort memory;
  WriteLog writes;
  DeviceTime time;
  std::uint64_t waves = 0;
  std::uint64_t unreported = 0;  // wave-instructions not yet added to the dispatch's sum

 private:
  Executor& owner_;
  std::vector<std::shared_ptr<const isa::Program>> programs_;
};

Executor::Executor(const DispatchInfo& info, CodeMap& code, GlobalWaveSync& wave_sync,
                   const AddressSpace& memory, const GpuConfig& config, Limits limits, std::uint64_t schedule,
                   bool log_writes, const std::function<std::string(std::uint64_t)>& resolver)
    : info_(info),
      code_(code),
      wave_sync_(wave_sync),
      memory_(memory),
      config_(config),
      limits_(limits),
      log_writes_(log_writes),
      resolver_(resolver),
      start_(std::chrono::steady_clock::now()),
      total_(info.workgroups()),
      time_(isa::cost_table(config.arch), config.compute_units, total_) {
  if (schedule == 0 || total_ < 2) return;
  first_ = schedule * 0x9E3779B97F4A7C15ull % total_;
  step_ = (schedule * 0xBF58476D1CE4E5B9ull >> 20) % total_;
  while (std::gcd(step_, total_) != 1) step_ = (step_ + 1) % total_;
}

std::optional<std::uint64_t> Executor::next_workgroup() {
  if (stopped_.load(std::memory_order_relaxed)) return std::nullopt;
  const std::uint64_t n = claimed_.fetch_add(1, std::memory_order_relaxed);
  if (n >= total_) {
    claimed_.store(total_, std::memory_order_relaxed);
    return std::nullopt;
  }
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((first_ + static_cast<Wide>(n) * step_) % total_);
}

void Executor::stop_with(Fault fault, std::uint64_t workgroup) {
  stopped_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (fault_ && fault_workgroup_ <= workgroup) return;  // of several, the one of the lowest workgroup
  fault_ = std::move(fault);
  fault_workgroup_ = workgroup;
}

bool Executor::over_limit(Thread& thread, std::uint64_t executed) {
  thread.unreported += executed;
  const std::uint64_t sum =
      executed_.fetch_add(thread.unreported, std::memory_order_relaxed) + thread.unreported;
  thread.unreported = 0;
  Fault fault;
  fault.kind = Fault::Kind::time_limit;
  if (limits_.cancel != nullptr && limits_.cancel->load(std::memory_order_relaxed)) {
    fault.detail = "The dispatch was cancelled";
  } else if (sum > limits_.wave_instructions) {
    fault.detail =
        "The dispatch executed more than " + std::to_string(limits_.wave_instructions) + " wave-instructions";
  } else if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() >
             limits_.seconds) {
    fault.detail = "The dispatch ran for more than " + std::to_string(limits_.seconds) + " seconds";
  } else {
    return false;
  }
  fault.kernel = demangled(code_.range_of(info_.kernel.entry).symbol);
  stop_with(std::move(fault), ~0ull - 1);
  return true;
}

void Executor::take_part() {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    ++active_;
  }
  const isa::HandlerSet& handlers = isa::handlers();
  Thread thread(*this);
  thread_local std::vector<std::unique_ptr<Workgroup>> spare;
  std::vector<std::unique_ptr<Workgroup>> resident;
  std::uint64_t since_last_start = 0;
  bool more = true;

  const auto describe = [&](const isa::Trouble& trouble, const Workgroup& group) {
    const isa::Wave& wave = group.current();
    Fault f;
    f.kind = trouble.kind;
    f.kernel = demangled(code_.range_of(info_.kernel.entry).symbol);
    // The handler has run, so pc is one further, unless it could not even start.
    f.pc = wave.pc != nullptr ? thread.address_of(wave.pc[-1]) : info_.kernel.entry;
    f.offset = f.pc - info_.kernel.entry;
    std::size_t length = 0;
    if (f.pc != 0) {
      const CodeRange range = code_.range_of(f.pc);
      if (range.size != 0)
        f.instruction = disassemble(config_.arch, reinterpret_cast<const void*>(f.pc),
                                    range.base + range.size - f.pc, &length);
      if (range.base != 0 && range.base != code_.range_of(info_.kernel.entry).base) {
        f.detail = "In function " + demangled(range.symbol);
        f.offset = f.pc - range.base;
      }
      if (resolver_) f.source = resolver_(f.pc);
    }
    for (unsigned d = 0; d < 3; ++d) f.workgroup[d] = wave.workgroup[d];
    f.wave = wave.index;
    f.lane = trouble.lane;
    f.address = trouble.address;
    f.bytes = trouble.bytes;
    if (!trouble.detail.empty()) f.detail += (f.detail.empty() ? "" : ": ") + trouble.detail;
    if (f.kind == Fault::Kind::memory_read || f.kind == Fault::Kind::memory_write ||
        f.kind == Fault::Kind::write_to_read_only)
      f.nearest = memory_.nearest(f.address);
    return f;
  };

  const auto begin_another = [&] {
    const auto index = next_workgroup();
    if (!index) {
      more = false;
      return;
    }
    std::unique_ptr<Workgroup> group;
    if (!spare.empty()) {
      group = std::move(spare.back());
      spare.pop_back();
    } else {
      group = std::make_unique<Workgroup>();
    }
    const isa::Inst* entry = nullptr;
    try {
      entry = thread.code_at(info_.kernel.start);
    } catch (const isa::Trouble& trouble) {
      Fault f;
      f.kind = trouble.kind;
      f.pc = info_.kernel.start;
      f.detail = "The kernel's entry is " + trouble.detail;
      stop_with(std::move(f), *index);
      return;
    }
    group->start(info_, *index, entry, &thread.memory, &thread, &isa::cost_table(config_.arch));
    resident.push_back(std::move(group));
    since_last_start = 0;
  };

  while (!stopped_.load(std::memory_order_relaxed)) {
    if (resident.empty()) {
      if (more) begin_another();
      if (resident.empty()) break;
    }
    bool all_wait = true;
    for (std::size_t n = 0; n < resident.size() && !stopped_.load(std::memory_order_relaxed);) {
      Workgroup& group = *resident[n];
      const std::uint64_t before = group.executed();
      Workgroup::Progress progress = Workgroup::Progress::advanced;
      try {
        progress = group.advance(handlers, kSlice);
      } catch (const isa::Trouble& trouble) {
        stop_with(describe(trouble, group), group.index());
      }
      const std::uint64_t executed = group.executed() - before;
      since_last_start += executed;
      if (executed > 4096)
        over_limit(thread, executed);
      else if ((thread.unreported += executed) > (1u << 18) || progress == Workgroup::Progress::waiting)
        over_limit(thread, 0);
      if (progress != Workgroup::Progress::waiting) all_wait = false;
      if (progress == Workgroup::Progress::finished) {
        thread.time.add(group);
        thread.waves += group.wave_count();
        if (spare.size() < 4) spare.push_back(std::move(resident[n]));
        resident[n] = std::move(resident.back());
        resident.pop_back();
      } else {
        ++n;
      }
    }
    if (!resident.empty() && more && (all_wait || since_last_start > kPatience * resident.size())) {
      const std::size_t wanted = std::min(2 * resident.size(), kMaxResident);
      while (more && resident.size() < wanted && !stopped_.load(std::memory_order_relaxed)) begin_another();
    } else if (all_wait && !resident.empty()) {
      std::this_thread::yield();
    }
  }

  const std::lock_guard lock(mutex_);
  executed_.fetch_add(thread.unreported, std::memory_order_relaxed);
  time_.merge_from(thread.time);
  if (log_writes_) writes_.merge_from(thread.writes);
  waves_ += thread.waves;
  --active_;
  idle_.notify_all();
}

void Executor::finish() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  idle_.wait(lock, [this] { return active_ == 0; });
}

DispatchOutcome Executor::outcome(std::vector<WrittenRange>* written) {
  const std::lock_guard lock(mutex_);
  DispatchOutcome out;
  out.cycles = time_.cycles(info_);
  out.wave_instructions = executed_.load();
  out.waves = waves_;
  out.fault = fault_;
  if (written != nullptr) *written = writes_.ranges();
  return out;
}

}  // namespace kerncap::sim
