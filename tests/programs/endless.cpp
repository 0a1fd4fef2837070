// R5: a kernel that never ends with --endless.
#include "program.h"

int main(int argc, char** argv) {
  int* ready = device_copy(std::vector<int>(1, flag(argc, argv, "--endless") ? 0 : 1));
  int* out = device_copy(std::vector<int>(64, 0));
  launch(find(load("endless"), "wait_for_flag"), 1, 64, ready, out);
  EXPECT(host_copy(out, 64)[63] == 1);
  std::printf("endless: ended\n");
}
