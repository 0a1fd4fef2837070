// Several packets with one ring of the doorbell, a barrier first (--rounds, 3). The program's own signals
// must do what they do without kerncap: one is shared by all dispatches of a round, and each holds a
// dispatch's timestamps.
#include "hsa_program.h"

int main(int argc, char** argv) {
  const long rounds = option(argc, argv, "--rounds", 3);
  const Machine machine;
  const Code code(machine);
  Queue queue(machine, 64, flag(argc, argv, "--single") ? HSA_QUEUE_TYPE_SINGLE : HSA_QUEUE_TYPE_MULTI);
  CHECK(hsa_amd_profiling_set_profiler_enabled(queue.queue, 1));
  int* values = machine.device_ints(1000, 0);
  void* args = arguments(machine, values, 1000);
  for (long round = 0; round < rounds; ++round) {
    const hsa_signal_t gate = new_signal(), shared = new_signal(3), own = new_signal();
    queue.submit({barrier(gate), dispatch(code.kernel("add_one"), args, 1024, shared),
                  dispatch(code.kernel("add_two"), args, 1024, shared),
                  dispatch(code.kernel("add_one"), args, 1024),
                  dispatch(code.kernel("add_two"), args, 1024, own), barrier({}, shared)});
    ::usleep(2000);
    EXPECT(hsa_signal_load_scacquire(own) == 1);
    hsa_signal_store_screlease(gate, 0);
    wait_until(shared, 0);
    wait_until(own, 0);
    hsa_amd_profiling_dispatch_time_t time{};
    CHECK(hsa_amd_profiling_get_dispatch_time(machine.gpu, own, &time));
    EXPECT(time.start != 0 && time.end > time.start);
    CHECK(hsa_signal_destroy(gate));
    CHECK(hsa_signal_destroy(shared));
    CHECK(hsa_signal_destroy(own));
  }
  std::printf("batches: %d\n", Machine::device_int(values));
  CHECK(hsa_queue_destroy(queue.queue));
  CHECK(hsa_shut_down());
  return 7;  // a status of its own
}
