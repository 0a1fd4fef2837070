// Dispatches of add_one one after the other, --pause-us (1000) apart, until --count (2000000) are done or
// SIGTERM. Prints how many it launched. With --big MB the kernel's memory is that large,
// and with --period WORDS it repeats itself. --items (64) work-items are in a dispatch, each of another word.
#include <algorithm>
#include <csignal>

#include "hsa_program.h"

static volatile std::sig_atomic_t stop = 0;

int main(int argc, char** argv) {
  std::signal(SIGTERM, [](int) { stop = 1; });
  const long count = option(argc, argv, "--count", 2000000), pause = option(argc, argv, "--pause-us", 1000);
  const long megabytes = option(argc, argv, "--big", 0);
  const auto period = static_cast<std::size_t>(option(argc, argv, "--period", 1L << 32));
  const auto items = static_cast<std::uint32_t>(option(argc, argv, "--items", 64));
  const Machine machine;
  const Code code(machine);
  Queue queue(machine, 1024, HSA_QUEUE_TYPE_MULTI);
  const std::size_t bytes = megabytes != 0 ? static_cast<std::size_t>(megabytes) << 20 : 4000;
  auto* values = static_cast<int*>(machine.allocate(machine.device, bytes));
  std::vector<int> start(bytes / sizeof(int));
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = static_cast<int>(i % period * 2654435761u | 1);
  CHECK(hsa_memory_copy(values, start.data(), bytes));
  void* args = arguments(machine, values, std::max(1000, static_cast<int>(items)));
  const std::uint64_t kernel = code.kernel("add_one");
  long launched = 0;
  for (; launched < count && stop == 0; ++launched) {
    queue.submit({dispatch(kernel, args, items)});
    if (pause != 0) ::usleep(static_cast<useconds_t>(pause));
  }
  const hsa_signal_t done = new_signal();
  queue.submit({barrier({}, done)});
  wait_until(done, 0, 120);
  std::printf("steady: %ld %d\n", launched, Machine::device_int(values) - start[0]);
  CHECK(hsa_queue_destroy(queue.queue));
  CHECK(hsa_shut_down());
}
