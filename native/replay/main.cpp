// kerncap-replay CAPTURE [--runtime LIBRARY] [--device N] [--layouts N] [--no-write-tracking]
//     [--no-timestamps]
//
// Holds the memory of one capture at its own addresses and runs the captured kernel and variants of it, as
// asked on stdin (protocol.h). Started by kerncap; exit status 0 after quit, 1 after a fault of the kernel,
// else the class of what kept it from starting: 2 usage, 4 device or address range, 6 damaged capture.
// --no-write-tracking treats a simulated device as hardware, which does not tell what a dispatch stores to,
// and whose memory the host may not touch; --no-timestamps, as if dispatches had none of their own.
// kerncap-replay-cuda is the same for captures of NVIDIA GPUs (backend.h).
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "replay/backend.h"
#include "replay/error.h"
#include "replay/mapped_file.h"
#include "replay/replay_memory.h"
#include "replay/reserve.h"
#include "replay/server.h"
#include "replay/session.h"
#include "snapshot/capture_reader.h"
#include "snapshot/error.h"

namespace {

using namespace kerncap;          // NOLINT
using namespace kerncap::replay;  // NOLINT

struct Options {
  std::string capture;
  std::string runtime = kDefaultRuntime;
  int device = -1;
  unsigned layouts = 8;
  bool track_writes = true;
  bool timestamps = true;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool named = word == "--runtime" || word == "--device" || word == "--layouts";
    if (named && i + 1 == argc) throw ReplayError(ErrorClass::usage, word + " needs a value");
    if (word == "--runtime") {
      options.runtime = argv[++i];
    } else if (word == "--device") {
      options.device = std::atoi(argv[++i]);
    } else if (word == "--layouts") {
      options.layouts = static_cast<unsigned>(std::atoi(argv[++i]));
    } else if (word == "--no-write-tracking") {
      options.track_writes = false;
    } else if (word == "--no-timestamps") {
      options.timestamps = false;
    } else if (options.capture.empty() && word[0] != '-') {
      options.capture = word;
    } else {
      throw ReplayError(ErrorClass::usage, "kerncap-replay: what is '" + word + "'?");
    }
  }
  if (options.capture.empty()) throw ReplayError(ErrorClass::usage, "kerncap-replay: which capture?");
  return options;
}

int exit_status(ErrorClass kind) {
  switch (kind) {
    case ErrorClass::usage:
      return 2;
    case ErrorClass::damaged:
      return 6;
    case ErrorClass::fault:
    case ErrorClass::timeout:
      return 1;
    default:
      return 4;
  }
}

// All that has to happen before the runtime is loaded, and before stdout is taken: if a range is taken, the
// program starts again.
struct Prepared {
  std::unique_ptr<snapshot::CaptureReader> capture;
  std::unique_ptr<ReplayMemory> memory;
  std::unique_ptr<Reservation> reservation;
};

Prepared prepare(const Options& options, char** argv) {
  Prepared prepared;
  prepared.capture = std::make_unique<snapshot::CaptureReader>(options.capture);
  prepared.memory = std::make_unique<ReplayMemory>(options.capture, *prepared.capture);
  prepared.reservation = std::make_unique<Reservation>(prepared.memory->placeholders());
  const std::string& collision = prepared.reservation->collision();
  if (collision.empty()) return prepared;
  if (prepared.reservation->short_of_memory()) throw ReplayError(ErrorClass::device, collision);
  if (layout_attempt() + 1 < options.layouts) start_again(argv);
  throw ReplayError(ErrorClass::collision, collision + " (" + std::to_string(layout_attempt() + 1) +
                                               " layouts of the address space were tried)");
}

int run_session(const Options& options, Prepared& prepared, Channel& channel) {
  if ((prepared.capture->dispatch.flags & snapshot::kNeedsListener) != 0) {
    throw ReplayError(ErrorClass::usage,
                      "the kernel calls back into the host while it runs (printf, device malloc, "
                      "assert): its hostcall buffer needs the program that served it");
  }
  report_unreadable_files(channel.fd());
  auto session =
      std::make_unique<Session>(*prepared.capture, *prepared.memory, *prepared.reservation, options.runtime,
                                options.device, options.track_writes, options.timestamps);
  greet(channel, *session, *prepared.capture);
  const int status = serve(channel, *session);
  // Threads of the runtime may still be waiting on a kernel that never ends: the process ends as it is.
  static_cast<void>(session.release());
  return status;
}

// Calls `step`; what it throws is sent to the client once there is a channel.
struct Failure {
  ErrorClass kind = ErrorClass::internal;
  std::string text;
};

template <typename Step>
Failure attempt(const Step& step) {
  try {
    step();
  } catch (const ReplayError& error) {
    return {error.kind(), error.what()};
  } catch (const snapshot::DamagedCapture& error) {
    return {ErrorClass::damaged, error.what()};
  } catch (const snapshot::IoError& error) {
    const bool shortage = snapshot::is_shortage(error.error_number());
    return {shortage ? ErrorClass::device : ErrorClass::damaged, error.what()};
  } catch (const std::exception& error) {
    return {ErrorClass::internal, error.what()};
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  // At the limit on the size of files a write is to fail, with a sentence, and not to end the process.
  ::signal(SIGXFSZ, SIG_IGN);
  Options options;
  Prepared prepared;
  int status = 0;
  Failure failure = attempt([&] {
    options = parse(argc, argv);
    prepared = prepare(options, argv);
  });
  Channel channel;
  if (failure.text.empty()) failure = attempt([&] { status = run_session(options, prepared, channel); });
  if (failure.kind == ErrorClass::collision && prepared.reservation != nullptr &&
      layout_attempt() + 1 < options.layouts) {
    // The runtime itself took a captured range.
    ::dup2(channel.fd(), STDOUT_FILENO);
    start_again(argv);
  }
  if (!failure.text.empty()) {
    channel.error(error_class_name(failure.kind), 0, failure.text);
    status = exit_status(failure.kind);
  }
  std::_Exit(status);
}
