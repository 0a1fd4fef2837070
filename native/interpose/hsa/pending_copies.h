// Copies that the program has started and that may not be done: a capture waits for them, as they write
// memory that it is about to save.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "abi/hsa.h"
#include "interpose/hsa/api.h"

namespace kerncap::interpose {

class PendingCopies {
 public:
  void started(abi::hsa_signal_t completion) {
    if (completion.handle == 0) return;
    const std::lock_guard lock(mutex_);
    signals_[next_++ % signals_.size()] = completion.handle;
  }

  // A signal must not be looked at once it is gone.
  void destroyed(abi::hsa_signal_t signal) {
    const std::lock_guard lock(mutex_);
    std::replace(signals_.begin(), signals_.end(), signal.handle, std::uint64_t{0});
  }

  // Whether all are done. A signal that the program has used again for something else looks like a copy that
  // is not, so whoever waits for this waits with a limit.
  [[nodiscard]] bool settled() {
    const std::lock_guard lock(mutex_);
    return std::none_of(signals_.begin(), signals_.end(), [](std::uint64_t handle) {
      return handle != 0 && api().core.hsa_signal_load_scacquire_fn({handle}) > 0;
    });
  }

 private:
  std::mutex mutex_;
  std::array<std::uint64_t, 64> signals_{};
  std::size_t next_ = 0;
};

}  // namespace kerncap::interpose
