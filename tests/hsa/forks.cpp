// A child of fork ends without hanging; it may also start a runtime of its own, and so may the program it
// execs.
#include <sys/wait.h>
#include <unistd.h>

#include "hsa_program.h"

namespace {

int wait_child(pid_t child) {
  for (int i = 0; i < 600; ++i) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return -1;
}

void run_one(const Machine& m, const std::string& path) {
  Module code = load_module(m.gpu, path);
  hsa_queue_t* queue = make_queue(m.gpu);
  auto* data = allocate(m.device, 64);
  hsa_signal_t done = make_signal(1);
  auto packet = dispatch_packet(m, code.kernel("add"), 64, done, data, 64u);
  submit(queue, &packet);
  WAIT_ZERO(done);
  CHECK_EQ(data[63], 64);
}

}  // namespace

int main(int, char** argv) {
  Machine m = open_machine();
  run_one(m, argv[1]);
  pid_t child = fork();
  if (child == 0) std::exit(7);  // runs exit handlers
  CHECK_EQ(wait_child(child), 7);
  child = fork();
  if (child == 0) {
    CHECK_EQ(hsa_shut_down(), HSA_STATUS_ERROR_NOT_INITIALIZED);
    run_one(open_machine(), argv[1]);
    OK(hsa_shut_down());
    std::exit(8);
  }
  CHECK_EQ(wait_child(child), 8);
  run_one(m, argv[1]);  // the parent's is as it was
  OK(hsa_shut_down());
  std::puts("forks ok");
}
