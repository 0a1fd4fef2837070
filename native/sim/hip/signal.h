// HSA signals that mark the end of something submitted: 1 until it ends, then 0. They are pooled and counted.
#pragma once

#include <memory>

#include "abi/hsa.h"

namespace kerncap::sim::hip {

class Signal {
 public:
  explicit Signal(abi::hsa_signal_t handle) : handle_(handle) {}
  ~Signal();
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  [[nodiscard]] abi::hsa_signal_t handle() const { return handle_; }
  [[nodiscard]] bool done() const;
  void complete() const;  // by the host
  // Returns when the signal is done. A queue that fails ends the process (see queue.cpp), so this always
  // ends.
  void wait() const;

 private:
  abi::hsa_signal_t handle_;
};

using SignalRef = std::shared_ptr<const Signal>;

// Null if the runtime has no signal left.
SignalRef make_signal();

}  // namespace kerncap::sim::hip
