#include "interpose/cuda/process.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <system_error>

#include "interpose/cuda/driver.h"
#include "interpose/cuda/hooked_launches.h"
#include "interpose/cuda/launch.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

constexpr long kPauseNs = 20'000'000;
constexpr std::uint64_t kFlushEveryNs = 200'000'000;
constexpr std::uint64_t kFinishLimitNs = 2'000'000'000;
constexpr int kFinishInVain = 3;

// Never destroyed: callbacks and CUPTI's threads may run until the process is gone.
std::atomic<Process*> current{nullptr};

// A forked child cannot use the driver that its parent started, and the statistics are the parent's.
void in_forked_child() { current.store(nullptr); }

void detach() {
  if (Process* p = current.load()) {
    p->finish();
    current.store(nullptr);
  }
}

std::string devices_text() {
  std::string text;
  int count = 0;
  driver().cuDeviceGetCount(&count);
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    char name[128] = {};
    int major = 0, minor = 0;
    driver().cuDeviceGet(&device, i);
    driver().cuDeviceGetName(name, sizeof name, device);
    driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    driver().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    const std::string arch = "sm_" + std::to_string(major * 10 + minor);
    text += std::to_string(i) + '\t' + arch + "\tnvptx64-nvidia-cuda--" + arch + '\t' + name + '\n';
  }
  return text;
}

}  // namespace

Process* process() { return current.load(std::memory_order_acquire); }

void attach() {
  const char* session = std::getenv("KERNCAP_SESSION");
  if (session == nullptr || *session == 0 || current.load() != nullptr) return;
  std::string error;
  std::unique_ptr<live::ControlFile> control = live::ControlFile::open(session, &error);
  if (control == nullptr || !load_libraries(&error)) {
    std::fprintf(stderr, "kerncap: not watching this process: %s\n", error.c_str());
    return;
  }
  std::string warning;
  std::unique_ptr<live::LiveFile> live = live::LiveFile::create(session, &warning, &control->block());
  if (live == nullptr) {
    std::fprintf(stderr, "kerncap: not watching this process: %s\n", warning.c_str());
    return;
  }
  auto made = std::make_unique<Process>(std::move(control), std::move(live), session);
  if (!warning.empty()) made->warn("statistics are not shown: " + warning);
  made->control->block().processes.fetch_add(1, std::memory_order_acq_rel);
  current.store(made.get(), std::memory_order_release);
  made.release()->start();
  ::pthread_atfork(nullptr, nullptr, &in_forked_child);
  std::atexit(&detach);
}

Process::Process(std::unique_ptr<live::ControlFile> control_file, std::unique_ptr<live::LiveFile> live_file,
                 const std::string& session)
    : control(std::move(control_file)),
      live(std::move(live_file)),
      code(session),
      kernels(*live, code),
      activity(*live, kernels, control->block().timing != 0),
      sampling(live->header(), kernels, control->block().timing != 0),
      captures(*this),
      runtime(driver_text()) {
  live::LiveHeader& header = live->header();
  header.clock = live::ClockKind::gpu;
  live::set_text(header.runtime, sizeof header.runtime, runtime);
}

void Process::start() {
  std::string why;
  if (!subscribe(&why)) {
    warn("not watching this process: " + why);
    return;
  }
  const bool hooked = hook_launches();
  if (hooked) {
    activity.launches_are_counted();
    graph_launches_are_hooked();
  }
  if (!activity.start(&why) || (!hooked && !activity.record_all(&why))) {
    warn("kernels are not timed: " + why);
    if (!hooked) watch_launches(kWithoutRecords, true);
  } else if (hooked) {
    sampling.start();
  }
  captures.poll();  // a request that is there already means the first launch, too
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
}

bool Process::records(CUstream stream) const {
  const OwnCalls own;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver().cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

std::uint64_t Process::count(const Kernel& kernel, const LaunchShape& shape, std::uint64_t launches) {
  live::Row& row = live->row(kernel.row);
  live->header().dispatches.fetch_add(launches, std::memory_order_relaxed);
  const std::uint32_t grid[3] = {shape.work_items(0), shape.work_items(1), shape.work_items(2)};
  live::count_dispatch(row, grid, shape.block, shape.dynamic_shared, live::coarse_monotonic_ns());
  if (is_tuning()) row.tuning.fetch_add(launches, std::memory_order_relaxed);
  row.calls.fetch_add(launches, std::memory_order_relaxed);
  return kernel.calls->count(launches);
}

void Process::withdraw(const Kernel& kernel, std::uint64_t launches) {
  live->header().dispatches.fetch_sub(launches, std::memory_order_relaxed);
  live::Row& row = live->row(kernel.row);
  row.calls.fetch_sub(launches, std::memory_order_relaxed);
  if (is_tuning()) row.tuning.fetch_sub(launches, std::memory_order_relaxed);
  kernel.calls->withdraw(launches);
}

void Process::housekeeping() {
  ::pthread_setname_np(::pthread_self(), "kerncap");
  const OwnCalls own;
  live::LiveHeader& header = live->header();
  std::string devices;
  std::uint64_t flushed = 0;
  while (!stopping_.load(std::memory_order_acquire)) {
    const std::uint64_t now = live::monotonic_ns();
    if (now - flushed > kFlushEveryNs && !captures.is_active()) {
      activity.flush(false);
      flushed = now;
    }
    if (devices.empty()) {  // cuInit has not returned yet when this thread starts
      devices = devices_text();
      live::set_text(header.devices, sizeof header.devices, devices);
    }
    if (activity.found_uncounted()) sampling.hold(Sampling::kForUncounted, true);
    sampling.tick(now);
    header.pending.store(activity.pending(), std::memory_order_relaxed);
    header.allocated.store(memory.bytes(), std::memory_order_relaxed);
    header.updated_ns.store(now, std::memory_order_relaxed);
    live->reserve_ahead();
    captures.poll();
    const timespec pause{0, kPauseNs};
    ::nanosleep(&pause, nullptr);
  }
}

void Process::finish() {
  captures.process_ends();
  stopping_.store(true, std::memory_order_release);
  if (housekeeper_.joinable() && housekeeper_.get_id() != std::this_thread::get_id()) housekeeper_.join();
  const std::uint64_t deadline = live::monotonic_ns() + kFinishLimitNs;
  const OwnCalls own;
  activity.flush(false);
  // Of launches made while records are switched off some may have been expected to have one.
  int in_vain = 0;
  for (std::uint64_t waiting = activity.pending(); waiting != 0 && live::monotonic_ns() < deadline;) {
    const timespec pause{0, kPauseNs};
    ::nanosleep(&pause, nullptr);
    activity.flush(false);
    const std::uint64_t now = activity.pending();
    in_vain = now == waiting ? in_vain + 1 : 0;
    waiting = now;
    if (in_vain == kFinishInVain && live->header().sampling.load() != 0) break;
  }
  activity.flush(true);
  activity.finish();
  live::LiveHeader& header = live->header();
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

}  // namespace kerncap::interpose::cuda
