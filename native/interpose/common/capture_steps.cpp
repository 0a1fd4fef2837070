#include "interpose/common/capture_steps.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

namespace kerncap::interpose {

std::string seconds(std::uint64_t ms) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", static_cast<double>(ms) / 1000);
  return text;
}

void pause_briefly() {
  const timespec step{0, 200'000};
  ::nanosleep(&step, nullptr);
}

void leave_program(live::LiveHeader& header, live::Control& control) {
  header.state.store(static_cast<std::uint32_t>(live::ProcessState::exited), std::memory_order_release);
  // What the program has printed belongs to it; but a thread of it may hold a stream's lock for good.
  std::atomic<bool> flushed{false};
  std::thread([&flushed] {
    std::fflush(nullptr);
    flushed.store(true);
  }).detach();
  for (int i = 0; i < 5000 && !flushed.load(); ++i) pause_briefly();
  control.state.store(static_cast<std::uint32_t>(live::CaptureState::done), std::memory_order_release);
  ::_exit(0);
}

}  // namespace kerncap::interpose
