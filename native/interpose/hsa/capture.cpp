#include "interpose/hsa/capture.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "interpose/common/capture_steps.h"
#include "interpose/common/memory_image.h"
#include "interpose/hsa/api.h"
#include "interpose/hsa/capture_records.h"
#include "interpose/hsa/memory_reader.h"
#include "interpose/hsa/process.h"
#include "snapshot/error.h"

namespace kerncap::interpose {

using namespace abi;  // NOLINT: the ABI's own names
using live::CaptureState;

namespace {

constexpr std::uint64_t kCopiesLimitNs = 1'000'000'000;

bool new_signal(hsa_signal_t* signal) {
  return api().core.hsa_signal_create_fn(1, 0, nullptr, signal) == HSA_STATUS_SUCCESS;
}

}  // namespace

Capture::Capture(Process& process, CaptureRequest request, InterceptQueue& queue, const Packet& packet,
                 Kernel& kernel, std::uint32_t row, std::uint64_t nth)
    : process_(process),
      control_(process.control->block()),
      request_(std::move(request)),
      queue_(queue),
      agent_(queue.agent()),
      packet_(packet),
      kernel_(kernel),
      row_(row),
      nth_(nth),
      nth_overall_(process.live->header().dispatches.load(std::memory_order_relaxed)) {}

std::unique_ptr<Capture> Capture::start(Process& process, const CaptureRequest& request,
                                        InterceptQueue& queue, const Packet& packet, Kernel& kernel,
                                        std::uint32_t row, std::uint64_t nth) {
  std::unique_ptr<Capture> capture(new Capture(process, request, queue, packet, kernel, row, nth));
  if (!new_signal(&capture->before_) || !new_signal(&capture->go_) || !new_signal(&capture->complete_) ||
      !new_signal(&capture->after_)) {
    return nullptr;
  }
  return capture;
}

void Capture::write_packets(const Packet& packet, std::vector<Packet>& out) const {
  out.push_back(barrier_packet({}, before_));
  out.push_back(barrier_packet(go_, {}));
  Packet target = packet;
  target.dispatch.completion_signal = complete_;
  // What it wrote must be visible to whoever copies it, and it must see what the host put back.
  target.dispatch.header |= 1 << HSA_PACKET_HEADER_BARRIER |
                            HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                            HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
  out.push_back(target);
  out.push_back(barrier_packet(after_, {}));
}

bool Capture::holds(const InterceptQueue& queue) const {
  return &queue != &queue_ && queue.agent().handle.handle == agent_.handle.handle;
}

void Capture::run_detached() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { run(); }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Capture::set_state(CaptureState state) {
  control_.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
}

void Capture::check_cancelled() const {
  if (cancelled()) throw Cancelled();
}

void Capture::run() {
  ::pthread_setname_np(::pthread_self(), "kerncap-capture");
  control_.started_ns = live::monotonic_ns();
  control_.bytes_done.store(0);
  control_.bytes_total.store(0);
  CaptureState outcome = CaptureState::failed;
  std::string message;
  try {
    take();
    outcome = CaptureState::done;
  } catch (const Cancelled&) {
    outcome = CaptureState::cancelled;
    message = "cancelled";
  } catch (const std::exception& error) {
    message = error.what();
  }
  control_.finished_ns = live::monotonic_ns();
  live::set_text(control_.message, sizeof control_.message, message);
  if (outcome == CaptureState::done && request_.exit_after) {
    process_.sink.record(row_, nth_, agent_.handle, complete_);
    leave_program(process_.live->header(), control_);
  }
  release();
  set_state(outcome);
  process_.captures.capture_ended();
  std::unique_ptr<Capture>(this).reset();
}

void Capture::wait_for(hsa_signal_t signal, std::uint64_t deadline, const std::string& what) {
  while (api().core.hsa_signal_load_scacquire_fn(signal) > 0) {
    process_.captures.poll();
    check_cancelled();
    if (live::monotonic_ns() >= deadline) throw Refused(what + " within " + seconds(request_.timeout_ms));
    pause_briefly();
  }
}

void Capture::drain() {
  set_state(CaptureState::draining);
  const std::uint64_t deadline = live::monotonic_ns() + request_.timeout_ms * kNsPerMs;
  wait_for(before_, deadline, "what was submitted before the dispatch on its queue did not complete");
  for (const auto& queue : process_.queues.all()) {
    if (!holds(*queue)) continue;
    bool injected = false;
    while (!queue->drained(request_.sequence, injected)) {
      process_.captures.poll();
      check_cancelled();
      if (live::monotonic_ns() >= deadline) {
        const Kernel* running = queue->running();
        throw Refused("queue " + std::to_string(queue->handle()->id) +
                      " of the same device did not become idle within " + seconds(request_.timeout_ms) +
                      ": " + (running != nullptr ? demangle(running->symbol) : "something on it") +
                      " is still running");
      }
      pause_briefly();
    }
  }
  const std::uint64_t copies_deadline = std::min(deadline, live::monotonic_ns() + kCopiesLimitNs);
  while (!process_.copies.settled() && live::monotonic_ns() < copies_deadline) pause_briefly();
}

void Capture::take() {
  drain();
  set_state(CaptureState::saving);
  const std::uint64_t saving_began = live::monotonic_ns();
  snapshot::CaptureWriter writer(request_.output);
  CaptureRecords records(process_, agent_, kernel_, packet_.dispatch.kernel_object);
  kernargs_ = records.read_kernargs(packet_);
  ImageProgress progress{&control_.bytes_done, &control_.bytes_total, [this] {
                           process_.captures.poll();
                           check_cancelled();
                         }};
  HsaImageMemory memory(process_.agents.host_pool(), agent_.handle);
  MemoryImage image(records.regions(kernargs_), request_.memory, memory, progress);
  records.refuse_pageable(kernargs_);
  image.add_roots(kernargs_, records.kernel_code().id);
  image.save_before(writer);
  const std::uint64_t saved = live::monotonic_ns() - saving_began;
  control_.saved_ns = saved;

  set_state(CaptureState::running);
  api().core.hsa_signal_store_screlease_fn(go_, 0);
  wait_for(complete_, live::monotonic_ns() + request_.timeout_ms * kNsPerMs, "the dispatch did not complete");

  set_state(CaptureState::saving_changes);
  const std::uint64_t changes_began = live::monotonic_ns();
  image.save_changes(writer);
  DispatchFacts facts;
  std::memcpy(facts.packet, packet_.bytes, sizeof facts.packet);
  facts.nth = nth_;
  facts.nth_overall = nth_overall_;
  facts.queue_id = queue_.handle()->id;
  facts.cooperative = queue_.cooperative();
  facts.memory = request_.memory;
  hsa_amd_profiling_dispatch_time_t time{};
  if (api().amd.hsa_amd_profiling_get_dispatch_time_fn(agent_.handle, complete_, &time) ==
      HSA_STATUS_SUCCESS) {
    facts.start = time.start;
    facts.end = time.end;
  }
  records.write(writer, facts, kernargs_, image);
  writer.commit();
  control_.saved_ns = saved + (live::monotonic_ns() - changes_began);
}

void Capture::release() {
  const auto& core = api().core;
  const hsa_signal_t original = packet_.dispatch.completion_signal;
  core.hsa_signal_store_screlease_fn(go_, 0);
  if (core.hsa_signal_load_scacquire_fn(complete_) <= 0) {
    process_.sink.record(row_, nth_, agent_.handle, complete_);
    if (original.handle != 0) complete_like(complete_, original);
  } else if (!process_.proxies.forward_later(complete_, original, agent_.handle, row_, nth_,
                                             queue_.stand_ins())) {
    process_.warn("the signal of a dispatch whose capture was given up cannot be completed");
  }
  core.hsa_signal_store_screlease_fn(after_, 0);
  // The four signals stay: packets that wait for them may still lie in queues.
}

}  // namespace kerncap::interpose
