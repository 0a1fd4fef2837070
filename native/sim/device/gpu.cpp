#include "sim/device/gpu.h"

#include <thread>

#include "sim/device/executor.h"
#include "sim/device/worker_pool.h"

namespace kerncap::sim {
namespace {

constexpr std::uint64_t kDefaultInstructions = 1ull << 50;
constexpr double kDefaultSeconds = 3600;

unsigned host_threads(const GpuConfig& config) {
  if (config.deterministic) return 1;
  if (config.threads != 0) return config.threads;
  const unsigned cores = std::thread::hardware_concurrency();
  return cores == 0 ? 1 : cores;
}

}  // namespace

struct Gpu::Impl {
  Impl(const GpuConfig& c, AddressSpace& m) : config(c), memory(m), code(c.arch), pool(host_threads(c) - 1) {}
  GpuConfig config;
  AddressSpace& memory;
  CodeMap code;
  GlobalWaveSync wave_sync;
  WorkerPool pool;
  std::function<std::string(std::uint64_t)> resolver;
  std::atomic<std::uint64_t> schedule{0};
};

Gpu::Gpu(const GpuConfig& config, AddressSpace& memory) : impl_(std::make_unique<Impl>(config, memory)) {}
Gpu::~Gpu() = default;

std::optional<std::string> Gpu::check_code(const std::vector<CodeRange>& ranges) const {
  for (const CodeRange& range : ranges)
    if (auto problem = isa::check_reachable(impl_->config.arch, range.base, range.size, range.symbol))
      return problem;
  return std::nullopt;
}

void Gpu::load_code(const std::vector<CodeRange>& ranges) { impl_->code.load(ranges); }
void Gpu::unload_code(const std::vector<CodeRange>& ranges) { impl_->code.unload(ranges); }

DispatchOutcome Gpu::run(const void* packet, std::uint64_t packet_address, std::uint64_t queue_address,
                         std::uint64_t dispatch_id, std::vector<WrittenRange>* written,
                         const std::atomic<bool>* cancel) {
  DispatchInfo info;
  info.arch = impl_->config.arch;
  info.packet_address = packet_address;
  info.queue_address = queue_address;
  info.dispatch_id = dispatch_id;
  if (written != nullptr) written->clear();
  std::optional<std::string> problem = parse_dispatch(packet, impl_->memory, &info);
  if (!problem && isa::opcode_table(impl_->config.arch) == nullptr)
    problem = std::string(arch_name(impl_->config.arch)) + " code cannot be executed: no opcode table";
  if (problem) {
    DispatchOutcome out;
    out.fault.emplace();
    out.fault->kind = Fault::Kind::bad_dispatch;
    out.fault->kernel = impl_->code.range_of(info.kernel.entry).symbol;
    out.fault->detail = *problem;
    return out;
  }

  Executor::Limits limits;
  limits.wave_instructions =
      impl_->config.max_wave_instructions != 0 ? impl_->config.max_wave_instructions : kDefaultInstructions;
  limits.seconds = impl_->config.max_seconds > 0 ? impl_->config.max_seconds : kDefaultSeconds;
  limits.cancel = cancel;
  const auto executor =
      std::make_shared<Executor>(info, impl_->code, impl_->wave_sync, impl_->memory, impl_->config, limits,
                                 impl_->schedule.load(), written != nullptr, impl_->resolver);
  // Helpers hold the executor; finish() keeps `info` alive for those that started, and turns away the rest.
  const std::uint64_t helpers = std::min<std::uint64_t>(impl_->pool.size(), info.workgroups() - 1);
  for (std::uint64_t n = 0; n < helpers; ++n) impl_->pool.submit([executor] { executor->take_part(); });
  executor->take_part();
  executor->finish();
  DispatchOutcome outcome = executor->outcome(written);
  if (outcome.fault) impl_->wave_sync.reset();
  return outcome;
}

void Gpu::set_source_resolver(std::function<std::string(std::uint64_t)> resolver) {
  impl_->resolver = std::move(resolver);
}
void Gpu::set_schedule(std::uint64_t seed) { impl_->schedule.store(seed); }
const GpuConfig& Gpu::config() const { return impl_->config; }

}  // namespace kerncap::sim
