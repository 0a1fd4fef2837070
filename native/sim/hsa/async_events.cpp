#include "sim/hsa/async_events.h"

#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {

void AsyncEvents::start_once() {
  if (!thread_.joinable() && !stopping_) thread_ = std::thread([this] { loop(); });
}

void AsyncEvents::add_handler(abi::hsa_signal_t signal, abi::hsa_signal_condition_t condition,
                              std::int64_t compare, abi::hsa_amd_signal_handler handler, void* arg) {
  {
    std::lock_guard lock(mutex_);
    added_.push_back({SignalRef(&runtime_->signals, signal), condition, compare, handler, arg});
    start_once();
  }
  MultiWait::wake_all();
}

void AsyncEvents::run_soon(std::function<void()> function) {
  {
    std::lock_guard lock(mutex_);
    functions_.push_back(std::move(function));
    start_once();
  }
  MultiWait::wake_all();
}

void AsyncEvents::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  MultiWait::wake_all();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();  // hsa_shut_down from a callback: the thread ends when the callback returns
  else
    thread_.join();
}

void AsyncEvents::loop() {
  std::vector<SignalCondition> conditions;
  while (true) {
    const std::uint32_t ticket = MultiWait::ticket();
    std::vector<std::function<void()>> functions;
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return;
      for (Handler& handler : added_) handlers_.push_back(std::move(handler));
      added_.clear();
      functions.swap(functions_);
    }
    for (const auto& function : functions) function();
    bool called = !functions.empty();
    for (std::size_t i = 0; i < handlers_.size();) {
      Handler& handler = handlers_[i];
      const std::int64_t value = handler.signal->load();
      if (!condition_holds(handler.condition, value, handler.compare)) {
        ++i;
        continue;
      }
      called = true;
      if (handler.callback(value, handler.arg)) {
        ++i;
      } else {
        handlers_.erase(handlers_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (called) continue;  // a callback may have changed anything
    conditions.clear();
    for (const Handler& handler : handlers_)
      conditions.push_back({handler.signal.get(), handler.condition, handler.compare});
    MultiWait::sleep(ticket, conditions, 3'600'000'000'000);
  }
}

}  // namespace kerncap::sim::rt
