#include "interpose/hsa/process.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "interpose/hsa/api.h"

namespace kerncap::interpose {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

constexpr std::uint64_t kFinishLimitNs = 2'000'000'000;
constexpr long kBusyPauseNs = 2'000'000;
constexpr long kIdlePauseNs = 20'000'000;

// Never destroyed: hooks and the runtime's threads may run until the process is gone.
std::atomic<Process*> current{nullptr};
// Set in a forked child: the parent's state is not this process's, so the next use makes a new one.
std::atomic<bool> attach_wanted{false};
std::mutex attach_mutex;

void in_forked_child() {
  if (current.load() == nullptr && !attach_wanted.load()) return;
  // What the parent's Process holds (threads, locks that may be taken, a mapping that is not inherited) is
  // left alone.
  current.store(nullptr);
  new (&attach_mutex) std::mutex;  // may have been taken by a thread that does not exist here
  attach_wanted.store(true);
}

Process* make_process() {
  const char* session = std::getenv("KERNCAP_SESSION");
  if (session == nullptr || *session == 0) return nullptr;
  std::string error;
  std::unique_ptr<live::ControlFile> control = live::ControlFile::open(session, &error);
  if (control == nullptr) {
    std::fprintf(stderr, "kerncap: not watching this process: %s\n", error.c_str());
    return nullptr;
  }
  std::string warning;
  std::unique_ptr<live::LiveFile> live = live::LiveFile::create(session, &warning, &control->block());
  if (live == nullptr) {
    std::fprintf(stderr, "kerncap: not watching this process: %s\n", warning.c_str());
    return nullptr;
  }
  auto made = std::make_unique<Process>(std::move(control), std::move(live), session);
  if (!warning.empty()) made->warn("statistics are not shown: " + warning);
  made->control->block().processes.fetch_add(1, std::memory_order_acq_rel);
  return made.release();
}

}  // namespace

Process* process() {
  Process* p = current.load(std::memory_order_acquire);
  if (p != nullptr || !attach_wanted.load(std::memory_order_acquire)) return p;
  const std::lock_guard lock(attach_mutex);
  if (attach_wanted.load()) {
    attach_wanted.store(false);
    current.store(make_process(), std::memory_order_release);
  }
  return current.load();
}

bool attach() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::pthread_atfork(nullptr, nullptr, &in_forked_child);
    std::atexit(&detach);
  });
  const std::lock_guard lock(attach_mutex);
  attach_wanted.store(false);
  if (current.load() == nullptr) current.store(make_process(), std::memory_order_release);
  return current.load() != nullptr;
}

void detach() {
  Process* p = current.load();
  if (p == nullptr) return;
  p->finish();
  current.store(nullptr);
}

Process::Process(std::unique_ptr<live::ControlFile> control_file, std::unique_ptr<live::LiveFile> live_file,
                 const std::string& session)
    : control(std::move(control_file)),
      live(std::move(live_file)),
      timing(control->block().timing != 0),
      runtime(runtime_info()),
      code(session),
      kernels(agents, code),
      allocations(agents),
      sink(*live, timing),
      proxies(sink),
      captures(*this) {
  live::LiveHeader& header = live->header();
  header.clock = runtime.simulated ? live::ClockKind::simulated : live::ClockKind::gpu;
  live::set_text(header.runtime, sizeof header.runtime, runtime.text);
}

void Process::prepare() {
  std::call_once(prepared_, [this] {
    api().load_extension();
    agents.load();
    live::LiveHeader& header = live->header();
    live::set_text(header.devices, sizeof header.devices, agents.devices_text());
    kernels.adopt_loaded();
  });
}

std::uint32_t Process::first_dispatch(Kernel& kernel) {
  const std::lock_guard lock(rows_mutex_);
  const std::uint32_t known = kernel.row.load(std::memory_order_relaxed);
  if (known != 0) return known - 1;
  const std::string demangled = demangle(kernel.symbol);
  live::NewRow row;
  row.id = kernel.id;
  row.name = kernel.symbol;
  row.demangled = demangled;
  row.kind = kernel.kind;
  row.device = kernel.device;
  row.code_hash = kernel.code_hash;
  row.vgprs = kernel.registers.vgprs;
  row.sgprs = kernel.registers.sgprs;
  row.lds_bytes = kernel.registers.lds_bytes;
  row.scratch_bytes = kernel.registers.scratch_bytes;
  const std::uint32_t index = live->add_row(row);
  kernel.row.store(index + 1, std::memory_order_release);
  return index;
}

std::uint64_t Process::count(const Packet& packet, Kernel* kernel, std::uint32_t row_index) {
  const hsa_kernel_dispatch_packet_t& d = packet.dispatch;
  live::Row& row = live->row(row_index);
  live->header().dispatches.fetch_add(1, std::memory_order_relaxed);
  const std::uint32_t grid[3] = {d.grid_size_x, d.grid_size_y, d.grid_size_z};
  const std::uint32_t block[3] = {d.workgroup_size_x, d.workgroup_size_y, d.workgroup_size_z};
  const std::uint32_t fixed_lds = kernel != nullptr ? kernel->registers.lds_bytes : 0;
  live::count_dispatch(row, grid, block,
                       d.group_segment_size > fixed_lds ? d.group_segment_size - fixed_lds : 0,
                       live::coarse_monotonic_ns());
  if (is_tuning()) row.tuning.fetch_add(1, std::memory_order_relaxed);
  row.calls.fetch_add(1, std::memory_order_relaxed);
  return kernel != nullptr ? kernel->calls->count() : 0;
}

bool Process::new_queue(hsa_queue_t* queue, const AgentInfo& agent) {
  auto made = std::make_shared<InterceptQueue>(*this, queue, agent);
  // The runtime keeps the pointer until the queue is destroyed, when hsa_queue_destroy's hook lets go of it.
  if (api().amd.hsa_amd_queue_intercept_register_fn(queue, &InterceptQueue::on_packets, made.get()) !=
      HSA_STATUS_SUCCESS) {
    return false;
  }
  if (timing) api().amd.hsa_amd_profiling_set_profiler_enabled_fn(queue, 1);
  queues.add(std::move(made));
  if (housekeeper_started_.exchange(true)) return true;
  // The program's signals are for the program's threads.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::string none;
  try {
    housekeeper_ = std::thread([this] { housekeeping(); });
  } catch (const std::system_error& error) {  // its own threads are the program's affair; this one is ours
    none = error.what();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!none.empty()) warn("nothing is captured, and times are read at the end: no thread for it: " + none);
  return true;
}

void Process::housekeeping() {
  ::pthread_setname_np(::pthread_self(), "kerncap");
  live::LiveHeader& header = live->header();
  while (!stopping_.load(std::memory_order_acquire)) {
    std::uint64_t pending = 0;
    for (const auto& queue : queues.all()) {
      queue->collect();
      pending += queue->in_flight();
    }
    header.pending.store(pending, std::memory_order_relaxed);
    header.allocated.store(allocations.bytes(), std::memory_order_relaxed);
    header.updated_ns.store(live::monotonic_ns(), std::memory_order_relaxed);
    live->reserve_ahead();
    captures.poll();
    const timespec pause{0, pending != 0 ? kBusyPauseNs : kIdlePauseNs};
    ::nanosleep(&pause, nullptr);
  }
}

void Process::finish() {
  captures.process_ends();
  stopping_.store(true, std::memory_order_release);
  if (housekeeper_.joinable() && housekeeper_.get_id() != std::this_thread::get_id()) housekeeper_.join();
  const std::uint64_t deadline = live::monotonic_ns() + kFinishLimitNs;
  for (const auto& queue : queues.all()) {
    const std::uint64_t now = live::monotonic_ns();
    queue->finish(now < deadline ? deadline - now : 0);
  }
  live::LiveHeader& header = live->header();
  const std::uint64_t unseen = proxies.in_flight();
  if (timing) header.lost.fetch_add(unseen, std::memory_order_relaxed);
  header.pending.store(0, std::memory_order_relaxed);
  header.updated_ns.store(live::monotonic_ns(), std::memory_order_relaxed);
  header.state.store(static_cast<std::uint32_t>(live::ProcessState::exited), std::memory_order_release);
}

void Process::warn(const std::string& text) {
  std::fprintf(stderr, "kerncap: %s\n", text.c_str());
  note(text);
}

void Process::note(const std::string& text) {
  live::LiveHeader& header = live->header();
  live::set_text(header.message, sizeof header.message, text);
}

}  // namespace kerncap::interpose
