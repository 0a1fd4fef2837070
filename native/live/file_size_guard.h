// A program that runs under a limit on file sizes gets SIGXFSZ, which ends it, when it writes past the limit.
// Our files must not do that to it: within the scope of a guard the signal is held back, so that only the
// call fails.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace kerncap::live {

class FileSizeGuard {
 public:
  FileSizeGuard() {
    sigset_t pending;
    ::sigemptyset(&only_);
    ::sigaddset(&only_, SIGXFSZ);
    was_pending_ = ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGXFSZ) == 1;
    ::pthread_sigmask(SIG_BLOCK, &only_, &before_);
  }
  ~FileSizeGuard() {
    // One that was sent to this thread meanwhile is ours.
    const timespec now{0, 0};
    if (!was_pending_) {
      while (::sigtimedwait(&only_, nullptr, &now) == SIGXFSZ) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  FileSizeGuard(const FileSizeGuard&) = delete;
  FileSizeGuard& operator=(const FileSizeGuard&) = delete;

 private:
  sigset_t only_, before_;
  bool was_pending_;
};

}  // namespace kerncap::live
