// One dispatch of call_back, with a buffer through which it could call its host; with --idle it does not.
#include "hsa_program.h"

int main(int argc, char** argv) {
  const Machine machine;
  const Code code(machine);
  Queue queue(machine, 64, HSA_QUEUE_TYPE_MULTI);
  void* const out = machine.allocate(machine.device, 4096);
  void* const buffer = machine.allocate(machine.host, 4096);
  void* const args = arguments(machine, out, static_cast<long>(flag(argc, argv, "--idle") ? 1 : 0));
  std::memcpy(static_cast<char*>(args) + 16 + 80, &buffer, sizeof buffer);
  const hsa_signal_t done = new_signal();
  queue.submit({dispatch(code.kernel("call_back"), args, 64, done)});
  wait_until(done, 0);
  std::printf("listener: %d\n", Machine::device_int(static_cast<int*>(out)));
  CHECK(hsa_queue_destroy(queue.queue));
  CHECK(hsa_shut_down());
}
