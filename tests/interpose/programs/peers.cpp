// Two queues: a kernel on one runs until the host lets it end, --peer-ms (300) after the other's dispatch of
// add_one was submitted; --never: only after add_one has completed. --single: queues with one producer.
#include <thread>

#include "hsa_program.h"

int main(int argc, char** argv) {
  const bool never = flag(argc, argv, "--never");
  const hsa_queue_type_t type = flag(argc, argv, "--single") ? HSA_QUEUE_TYPE_SINGLE : HSA_QUEUE_TYPE_MULTI;
  const Machine machine;
  const Code code(machine);
  Queue busy(machine, 64, type), queue(machine, 64, type);
  auto* go = static_cast<int*>(machine.allocate(machine.host, 4096));
  *go = 0;
  int* values = machine.device_ints(1000, 10);
  int* others = machine.device_ints(1000, 0);
  int* written = machine.device_ints(77, 0);
  const hsa_signal_t busy_done = new_signal(), done = new_signal(), after_done = new_signal();
  busy.submit({dispatch(code.kernel("wait_for_host"), arguments(machine, go, written), 64, busy_done)});
  ::usleep(20000);
  queue.submit({dispatch(code.kernel("add_one"), arguments(machine, values, 1000), 1024, done)});
  // More work for the busy queue while the capture is under way.
  busy.submit({dispatch(code.kernel("add_two"), arguments(machine, others, 1000), 1024, after_done)});
  std::thread later;
  if (!never) {
    later = std::thread([&] {
      ::usleep(static_cast<useconds_t>(option(argc, argv, "--peer-ms", 300) * 1000));
      __atomic_store_n(go, 1, __ATOMIC_SEQ_CST);
    });
  }
  wait_until(done, 0);
  if (never) __atomic_store_n(go, 1, __ATOMIC_SEQ_CST);
  wait_until(busy_done, 0);
  wait_until(after_done, 0);
  if (later.joinable()) later.join();
  std::printf("peers: %d %d %d\n", Machine::device_int(values), Machine::device_int(others),
              Machine::device_int(written));
  CHECK(hsa_queue_destroy(busy.queue));
  CHECK(hsa_queue_destroy(queue.queue));
  CHECK(hsa_shut_down());
}
