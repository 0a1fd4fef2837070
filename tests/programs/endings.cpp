// Programs that end, or go on, in unusual ways: --way NAME, with --launches (20) before it. What is printed, and
// how the program ends, does not depend on who watches.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>

#include "program.h"

extern char** environ;

namespace {

int launches = 20;
std::atomic<int> alarms{0};

hipFunction_t kernel() {
  static hipFunction_t found = find(load("endings"), "bump");
  return found;
}

// Launches and checks; prints how many.
void work(int times, hipStream_t stream = nullptr) {
  int* count = device_copy(std::vector<int>(4, 0));
  for (int l = 0; l < times; ++l) launch_on(stream, kernel(), 4, 64, count);
  CHECK(hipStreamSynchronize(stream));
  EXPECT(host_copy(count, 4)[3] == times);
  CHECK(hipFree(count));
}

void work_and_say() {
  work(launches);
  std::printf("launched %d\n", launches);
  std::fflush(stdout);
}

struct AtTheEnd {
  bool armed = false;
  ~AtTheEnd() {
    if (armed) std::printf("destructor\n");
  }
} at_the_end;

void threads() {
  std::vector<std::thread> all;
  for (int t = 0; t < 16; ++t) {
    all.emplace_back([] {
      hipStream_t stream = nullptr;
      CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
      work(launches, stream);
      CHECK(hipStreamDestroy(stream));
    });
  }
  for (std::thread& thread : all) thread.join();
  std::printf("16 threads\n");
}

void children() {
  int failed = 0;
  for (int round = 0; round < 2; ++round) {
    std::vector<pid_t> started;
    for (int c = 0; c < 10; ++c) {
      const pid_t pid = fork();
      EXPECT(pid >= 0);
      if (pid == 0) {
        work(2 + c);
        _exit(c);
      }
      started.push_back(pid);
    }
    for (std::size_t c = 0; c < started.size(); ++c) {
      int status = 0;
      EXPECT(waitpid(started[c], &status, 0) == started[c]);
      failed += !WIFEXITED(status) || WEXITSTATUS(status) != static_cast<int>(c);
    }
  }
  std::printf("20 children, %d failed\n", failed);
}

void print_much() {
  work(launches);
  std::string line(99, 'x');
  line += '\n';
  for (int l = 0; l < 1'000'000; ++l) {
    if (l % 250'000 == 0) work(1);
    std::fwrite(line.data(), 1, line.size(), stdout);
  }
}

void signals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { ++alarms; };
  action.sa_flags = SA_RESTART;
  EXPECT(sigaction(SIGALRM, &action, nullptr) == 0);
  const itimerval often = {{0, 500}, {0, 500}};
  EXPECT(setitimer(ITIMER_REAL, &often, nullptr) == 0);
  work(launches * 100);
  const itimerval never = {};
  EXPECT(setitimer(ITIMER_REAL, &never, nullptr) == 0);
  EXPECT(alarms > 0);
  std::printf("launched %d between signals\n", launches * 100);
}

void close_all() {
  work(launches);
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  work(launches);
  std::printf("launched %d after closing every file\n", launches);
}

void limits() {
  work(launches);
  const rlimit files = {3, 3};  // nothing more can be opened
  EXPECT(setrlimit(RLIMIT_NOFILE, &files) == 0);
  const rlimit none = {0, 0};
  EXPECT(setrlimit(RLIMIT_FSIZE, &none) == 0);
  work(launches);
  int out[2];
  EXPECT(pipe(out) < 0 && errno == EMFILE);
  std::fprintf(stderr, "launched %d within limits\n", launches);
}

void directory() {
  work(1);
  char name[] = "/tmp/kerncap-endings-XXXXXX";
  EXPECT(mkdtemp(name) != nullptr && chdir(name) == 0 && rmdir(name) == 0);
  umask(0777);
  work_and_say();
}

void daemonize() {
  work(1);
  int done[2];
  EXPECT(pipe(done) == 0);
  if (fork() != 0) {
    char result = 0;
    EXPECT(read(done[0], &result, 1) == 1);
    std::printf("the daemon says %d\n", result);
    return;
  }
  setsid();
  if (fork() != 0) _exit(0);
  if (chdir("/") != 0) _exit(9);
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  const char good = 1;
  _exit(write(done[1], &good, 1) == 1 ? 0 : 9);
}

void runtime_again() {
  void* library = dlopen("libhsa-runtime64.so.1", RTLD_NOW);
  EXPECT(library != nullptr);
  const auto init = reinterpret_cast<int (*)()>(dlsym(library, "hsa_init"));
  const auto shut_down = reinterpret_cast<int (*)()>(dlsym(library, "hsa_shut_down"));
  for (int round = 0; round < 3; ++round) EXPECT(init() == 0 && shut_down() == 0);
  EXPECT(shut_down() != 0);
  dlclose(library);
  work_and_say();
}

void unload() {
  for (int round = 0; round < 3; ++round) {
    hipModule_t module = load("endings");
    int* count = device_copy(std::vector<int>(4, 0));
    launch(find(module, "bump"), 4, 64, count);
    EXPECT(host_copy(count, 4)[0] == 1);
    CHECK(hipModuleUnload(module));
    CHECK(hipFree(count));
  }
  CHECK(hipDeviceReset());
  std::printf("loaded and unloaded 3 times\n");
}

[[noreturn]] void crash() {
  work_and_say();
  *reinterpret_cast<volatile int*>(8) = 1;
  std::abort();
}

void become_another() {
  work_and_say();
  execl("/bin/sh", "sh", "-c", "echo another program; exit 7", nullptr);
}

void become_another_without_environment() {
  work_and_say();
  char* const words[] = {const_cast<char*>("/bin/echo"), const_cast<char*>("no environment"), nullptr};
  char* const nothing[] = {nullptr};
  execve(words[0], words, nothing);
}

void main_thread_first() {
  kernel();  // once the main thread is gone, /proc/self/exe cannot be read
  std::thread([] {
    usleep(50'000);
    work_and_say();
    std::exit(6);
  }).detach();
  pthread_exit(nullptr);
}

const std::map<std::string, std::function<int()>> ways = {
    {"return", [] { return work_and_say(), 0; }},
    {"status", [] { return work_and_say(), 77; }},
    {"exit", [] { return work_and_say(), std::atexit([] { std::printf("atexit\n"); }), at_the_end.armed = true,
                         std::exit(5), 0; }},
    {"at-exit-launch", [] { return std::atexit([] { work_and_say(); }), work_and_say(), 4; }},
    {"_exit", [] { return work_and_say(), _exit(9), 0; }},
    {"quick_exit", [] { return work_and_say(), std::quick_exit(8), 0; }},
    {"in-flight", [] {
       int* count = device_copy(std::vector<int>(4, 0));
       for (int l = 0; l < 500; ++l) launch(kernel(), 4, 64, count);
       return 3;  // without waiting
     }},
    {"abort", [] { return work_and_say(), std::abort(), 0; }},
    {"crash", [] { return crash(), 0; }},
    {"throw", []() -> int { work_and_say(); throw std::runtime_error("on purpose"); }},
    {"terminate", [] { return work_and_say(), raise(SIGTERM), 0; }},
    {"kill", [] { return work_and_say(), raise(SIGKILL), 0; }},
    {"main-thread-first", [] { return main_thread_first(), 0; }},
    {"threads", [] { return threads(), 0; }},
    {"children", [] { return children(), 0; }},
    {"print", [] { return print_much(), 0; }},
    {"signals", [] { return signals(), 0; }},
    {"close-all", [] { return close_all(), 0; }},
    {"limits", [] { return limits(), 0; }},
    {"directory", [] { return directory(), 0; }},
    {"daemonize", [] { return daemonize(), 0; }},
    {"runtime-again", [] { return runtime_again(), 0; }},
    {"unload", [] { return unload(), 0; }},
    {"exec", [] { return become_another(), 0; }},
    {"exec-bare", [] { return become_another_without_environment(), 0; }},
    {"not-dumpable", [] { return prctl(PR_SET_DUMPABLE, 0), work_and_say(), 0; }},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argc > 2 ? argv[2] : "return";
  launches = static_cast<int>(option(argc, argv, "--launches", 20));
  if (way == "list") {
    for (const auto& [name, action] : ways) std::printf("%s\n", name.c_str());
    return 0;
  }
  return ways.at(way)();
}
