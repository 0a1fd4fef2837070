#include "interpose/cuda/capture.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "interpose/common/capture_steps.h"
#include "interpose/common/image_regions.h"
#include "interpose/common/names.h"
#include "interpose/cuda/capture_records.h"
#include "interpose/cuda/driver.h"
#include "interpose/cuda/process.h"
#include "live/file_size_guard.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names
using live::CaptureState;

namespace {

// What a thread waits for that may wait for ever: it is left alone then.
struct Synchronised {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  CUresult result = CUDA_SUCCESS;
};

}  // namespace

Capture::Capture(Process& process, CaptureRequest request, Launch launch, Kernel& kernel, std::uint64_t nth)
    : process_(process),
      control_(process.control->block()),
      request_(std::move(request)),
      launch_(std::move(launch)),
      kernel_(kernel),
      nth_(nth),
      nth_overall_(process.live->header().dispatches.load(std::memory_order_relaxed)),
      outcome_(CaptureState::failed) {}

void Capture::set_state(CaptureState state) {
  control_.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
}

void Capture::check() {
  process_.captures.poll();
  if (cancelled()) throw Cancelled();
}

// The wait itself is another thread's: it cannot be broken off.
void Capture::settle(const std::string& what) {
  auto state = std::make_shared<Synchronised>();
  sigset_t all, mask;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &mask);
  std::thread([state, context = launch_.context] {
    const OwnCalls own;
    CUresult result = driver().cuCtxSetCurrent(context);
    if (result == CUDA_SUCCESS) result = driver().cuCtxSynchronize();
    const std::lock_guard lock(state->mutex);
    state->result = result;
    state->done = true;
    state->changed.notify_all();
  }).detach();
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  const std::uint64_t deadline = live::monotonic_ns() + request_.timeout_ms * kNsPerMs;
  std::unique_lock lock(state->mutex);
  while (!state->done) {
    state->changed.wait_for(lock, std::chrono::milliseconds(5));
    if (state->done) break;
    lock.unlock();
    check();
    lock.lock();
    if (live::monotonic_ns() >= deadline) throw Refused(what + " within " + seconds(request_.timeout_ms));
  }
  if (state->result != CUDA_SUCCESS)
    throw Refused("waiting for the device gave " + error_text(state->result));
}

std::vector<ImageRegion> Capture::regions() {
  std::vector<ImageRegion> list;
  for (Allocation& allocation : process_.memory.all()) {
    const bool elsewhere =
        allocation.kind == snapshot::RegionKind::device && allocation.owner != kernel_.device + 1;
    if (elsewhere) allocation.refusal = "it is memory of device " + std::to_string(allocation.owner - 1);
    // Mappings that follow one another are one range of addresses to the kernel: it may cross from one to the
    // next.
    if (!list.empty() && allocation.kind == snapshot::RegionKind::vmem) {
      Allocation& last = list.back().source;
      if (last.kind == allocation.kind && last.end() == allocation.address &&
          last.refusal == allocation.refusal) {
        last.bytes += allocation.bytes;
        continue;
      }
    }
    ImageRegion region;
    region.source = std::move(allocation);
    list.push_back(std::move(region));
  }
  for (const Code* code : process_.kernels.loaded(launch_.context)) {
    if (code->module == nullptr && code != kernel_.code) continue;
    for (const CubinVariable& variable : code->cubin->variables) {
      CUdeviceptr address = 0;
      std::size_t bytes = 0;
      if (code->module == nullptr ||
          driver().cuModuleGetGlobal(&address, &bytes, code->module, variable.name.c_str()) != CUDA_SUCCESS ||
          bytes == 0) {
        continue;
      }
      ImageRegion region;
      region.source.address = address;
      region.source.bytes = bytes;
      region.source.kind = snapshot::RegionKind::code_segment;
      region.code_object = code->id;
      if (overlaps_any(list, address, address + bytes)) continue;
      insert_sorted(list, std::move(region));
      variables_.push_back({code->id, variable.name, address, bytes, variable.constant});
      if (codes_.empty() || codes_.back() != code) codes_.push_back(code);
    }
  }
  // What arguments point to that came from none of the calls we follow; the driver knows it then.
  for (std::size_t offset = 0; offset + 8 <= parameters_.size(); offset += 4) {
    const std::uint64_t word = word_at(parameters_, offset);
    if (word < 0x10000 || word >> 47 != 0 || overlaps_any(list, word, word + 1)) continue;
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    int type = 0;
    if (driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) != CUDA_SUCCESS)
      continue;
    if (driver().cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, word) != CUDA_SUCCESS ||
        driver().cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, word) != CUDA_SUCCESS ||
        word - base >= bytes) {
      throw Refused("the argument at byte " + std::to_string(offset) + " points to " + hex(word) +
                    ", memory whose extent the driver does not tell");
    }
    ImageRegion region;
    region.source.address = base;
    region.source.bytes = bytes;
    region.source.kind =
        type == CU_MEMORYTYPE_HOST ? snapshot::RegionKind::host : snapshot::RegionKind::device;
    if (!overlaps_any(list, base, base + bytes)) insert_sorted(list, std::move(region));
  }
  return list;
}

void Capture::before() {
  control_.started_ns = live::monotonic_ns();
  control_.bytes_done.store(0);
  control_.bytes_total.store(0);
  watch_copies(true);
  try {
    save_before();
    return;
  } catch (const Cancelled&) {
    outcome_ = CaptureState::cancelled;
    message_ = "cancelled";
  } catch (const std::exception& error) {
    message_ = error.what();
  }
  over_ = true;
}

void Capture::save_before() {
  set_state(CaptureState::draining);
  settle("what was submitted to the device before the launch did not complete");
  set_state(CaptureState::saving);
  const std::uint64_t began = live::monotonic_ns();
  if (kernel_.code == nullptr || !kernel_.unknown_code.empty()) {
    throw Refused("the code of " + kernel_.demangled + " cannot be told: " + kernel_.unknown_code);
  }
  const live::FileSizeGuard guard;
  writer_ = std::make_unique<snapshot::CaptureWriter>(request_.output);
  parameters_ = pack_parameters(launch_, kernel_);
  memory_ = std::make_unique<CudaImageMemory>(launch_.context);
  const ImageProgress progress{&control_.bytes_done, &control_.bytes_total, [this] { check(); }};
  image_ = std::make_unique<MemoryImage>(regions(), request_.memory, *memory_, progress);
  image_->add_roots(parameters_, kernel_.code->id);
  image_->save_before(*writer_);
  control_.saved_ns = live::monotonic_ns() - began;
  process_.activity.watch(launch_.correlation);
  set_state(CaptureState::running);
}

void Capture::after(CUresult result) {
  changed(result);
  end();
}

void Capture::changed(CUresult result) {
  if (over_) return;
  try {
    save_after(result);
    outcome_ = CaptureState::done;
  } catch (const Cancelled&) {
    outcome_ = CaptureState::cancelled;
    message_ = "cancelled";
  } catch (const std::exception& error) {
    message_ = error.what();
  }
}

bool Capture::ends_program() const { return outcome_ == CaptureState::done && request_.exit_after; }

void Capture::refuse(const std::string& why, CaptureState outcome) {
  control_.started_ns = live::monotonic_ns();
  outcome_ = outcome;
  message_ = why;
  end();
}

void Capture::save_after(CUresult result) {
  if (result != CUDA_SUCCESS) throw Refused("the launch itself failed: " + error_text(result));
  settle("the dispatch did not complete");
  set_state(CaptureState::saving_changes);
  const std::uint64_t began = live::monotonic_ns();
  const live::FileSizeGuard guard;
  image_->save_changes(*writer_);
  process_.activity.flush(false);
  CaptureRecords(*this).write(*writer_);
  writer_->commit();
  control_.saved_ns += live::monotonic_ns() - began;
}

void Capture::end() {
  watch_copies(false);
  image_.reset();
  writer_.reset();  // removes what was not committed
  control_.finished_ns = live::monotonic_ns();
  live::set_text(control_.message, sizeof control_.message, message_);
  if (ends_program()) {
    process_.live->header().pending.store(0, std::memory_order_relaxed);
    leave_program(process_.live->header(), control_);
  }
  set_state(outcome_);
  process_.captures.capture_ended();  // deletes this
}

}  // namespace kerncap::interpose::cuda
