// C14: several processes. Each launches count_up (5 + its number) times.
//   --mode fork        fork --children (2) before the GPU is used; parent and children use it
//   --mode fork-after  the parent has used the GPU when it forks; the children do not, and end
//   --mode spawn       the children are new programs
#include <spawn.h>
#include <sys/wait.h>

#include <cstring>

#include "program.h"

extern char** environ;

namespace {

long work(long number) {
  int* x = device_copy(std::vector<int>(64, 0));
  hipFunction_t count_up = find(load("processes"), "count_up");
  const long launches = 5 + number;
  for (long l = 0; l < launches; ++l) launch(count_up, 1, 64, x, 1);
  EXPECT(host_copy(x, 64)[63] == launches);
  return launches;
}

}  // namespace

int main(int argc, char** argv) {
  const long number = option(argc, argv, "--child", 0);
  if (number != 0) {
    work(number);
    return 0;
  }
  const char* mode = "fork";
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--mode") == 0) mode = argv[i + 1];
  }
  const long children = option(argc, argv, "--children", 2);
  if (std::strcmp(mode, "fork-after") == 0) work(0);
  std::vector<pid_t> started;
  for (long c = 1; c <= children; ++c) {
    pid_t pid = -1;
    if (std::strcmp(mode, "spawn") == 0) {
      const std::string text = std::to_string(c);
      const std::string self = program_folder() + "/processes";
      char* const arguments[] = {argv[0], const_cast<char*>("--child"), const_cast<char*>(text.c_str()),
                                 nullptr};
      EXPECT(posix_spawn(&pid, self.c_str(), nullptr, nullptr, arguments, environ) == 0);
    } else {
      pid = fork();
      EXPECT(pid >= 0);
      if (pid == 0) {
        if (std::strcmp(mode, "fork") == 0) work(c);
        std::exit(0);
      }
    }
    started.push_back(pid);
  }
  if (std::strcmp(mode, "fork-after") != 0) work(0);
  for (pid_t pid : started) {
    int status = 0;
    EXPECT(waitpid(pid, &status, 0) == pid);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  std::printf("processes: %s, %ld children\n", mode, children);
}
