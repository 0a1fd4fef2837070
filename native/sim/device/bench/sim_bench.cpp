// kerncap-sim-bench: how fast the simulator executes, one JSON object a line: {"name", "value", "unit"}.
// Rates are by processor time of the threads that execute, so that a busy machine does not change them much.
// `kerncap-sim-bench [SECONDS]`: time to spend on each measurement (default 0.5).
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "sim/device/tools/code_object.h"
#include "sim/isa/execute.h"

namespace kerncap::sim {
namespace {

#include "sim/device/bench/kernels.inc"

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
double wall_seconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void report(const char* name, double value, const char* unit) {
  std::printf("{\"name\": \"%s\", \"value\": %.4g, \"unit\": \"%s\"}\n", name, value, unit);
  std::fflush(stdout);
}

class Bench {
 public:
  Bench(unsigned threads, double seconds) : seconds_(seconds), gpu_({.threads = threads}, memory_) {
    load(kLoops, sizeof kLoops);
    load(kGemm, sizeof kGemm);
    load(kVectorAdd, sizeof kVectorAdd);
  }

  std::uint64_t alloc(std::size_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (p == MAP_FAILED) throw std::runtime_error("out of memory");
    memory_.add({reinterpret_cast<std::uint64_t>(p), bytes, true, "device"});
    return reinterpret_cast<std::uint64_t>(p);
  }

  struct Rate {
    double by_processor = 0, by_wall = 0;  // wave-instructions a second
    double dispatch_wall = 0;              // seconds of the fastest dispatch
  };
  // Arguments are the kernel's own; the group size of the hidden arguments is written behind them.
  Rate measure(const std::string& kernel, const std::vector<std::uint64_t>& words, std::uint32_t groups_x,
               std::uint32_t groups_y, std::uint32_t block_x, std::uint32_t block_y) {
    const tools::Symbol descriptor = symbols_.at(kernel + ".kd");
    std::uint32_t fixed[2];
    std::memcpy(fixed, reinterpret_cast<const void*>(descriptor.address), sizeof fixed);
    auto* kernarg = reinterpret_cast<std::uint8_t*>(kernarg_);
    std::memset(kernarg, 0, 4096);
    std::memcpy(kernarg, words.data(), 8 * words.size());
    std::uint8_t* hidden = kernarg + 8 * words.size();
    const std::uint32_t counts[3] = {groups_x, groups_y, 1};
    const std::uint16_t sizes[3] = {static_cast<std::uint16_t>(block_x), static_cast<std::uint16_t>(block_y),
                                    1};
    std::memcpy(hidden, counts, sizeof counts);
    std::memcpy(hidden + 12, sizes, sizeof sizes);
    std::uint8_t packet[64] = {};
    const auto set = [&packet](std::size_t offset, auto value) {
      std::memcpy(packet + offset, &value, sizeof value);
    };
    set(2, std::uint16_t{3});
    for (unsigned d = 0; d < 3; ++d) {
      set(4 + 2 * d, sizes[d]);
      set(12 + 4 * d, counts[d] * sizes[d]);
    }
    set(24, fixed[1]);
    set(28, fixed[0]);
    set(32, descriptor.address);
    set(40, kernarg_);
    Rate rate;
    rate.dispatch_wall = 1e30;
    for (double spent = 0; spent < seconds_;) {
      const double processor = processor_seconds(), wall = wall_seconds();
      const DispatchOutcome outcome = gpu_.run(packet, 0, 0, 1);
      const double p = processor_seconds() - processor, w = wall_seconds() - wall;
      if (outcome.fault) throw std::runtime_error(kernel + ": " + outcome.fault->to_string());
      rate.by_processor = std::max(rate.by_processor, static_cast<double>(outcome.wave_instructions) / p);
      rate.by_wall = std::max(rate.by_wall, static_cast<double>(outcome.wave_instructions) / w);
      rate.dispatch_wall = std::min(rate.dispatch_wall, w);
      spent += w;
    }
    return rate;
  }

 private:
  void load(const unsigned char* data, std::size_t bytes) {
    char path[] = "/tmp/kerncap-sim-bench-XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0) throw std::runtime_error("cannot write to /tmp");
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    objects_.push_back(std::make_unique<tools::CodeObject>(path, &memory_));
    std::remove(path);
    ::close(fd);
    symbols_.insert(objects_.back()->symbols().begin(), objects_.back()->symbols().end());
    if (const auto problem = gpu_.check_code(objects_.back()->code())) throw std::runtime_error(*problem);
    gpu_.load_code(objects_.back()->code());
  }

  double seconds_;
  AddressSpace memory_;
  Gpu gpu_;
  std::vector<std::unique_ptr<tools::CodeObject>> objects_;
  std::map<std::string, tools::Symbol> symbols_;
  std::uint64_t kernarg_ = alloc(4096);
};

std::uint64_t words(std::uint32_t low, std::uint32_t high) {
  return static_cast<std::uint64_t>(high) << 32 | low;
}
std::uint32_t bits(float x) {
  std::uint32_t u;
  std::memcpy(&u, &x, 4);
  return u;
}

void run(double seconds) {
  std::fprintf(stderr, "handlers: %s\n", isa::handlers().level);
  Bench one(1, seconds);
  const double million = 1e-6;
  const std::uint64_t p = one.alloc(4096);
  report("fma_loop", one.measure("fma_loop", {p, 20000}, 1, 1, 64, 1).by_processor * million,
         "M wave-instructions/s");
  report("fma_scalar_operand_loop",
         one.measure("fma_scalar_loop", {p, 20000}, 1, 1, 64, 1).by_processor * million,
         "M wave-instructions/s");
  report("scalar_loop", one.measure("scalar_loop", {p, 50000}, 1, 1, 64, 1).by_processor * million,
         "M wave-instructions/s");
  constexpr std::uint32_t kElements = 1 << 20;
  const std::uint64_t a = one.alloc(4 * kElements), b = one.alloc(4 * kElements),
                      c = one.alloc(4 * kElements);
  report("vector_add",
         one.measure("vadd", {a, b, c, kElements}, kElements / 256, 1, 256, 1).by_processor * million,
         "M wave-instructions/s");
  constexpr std::uint32_t kN = 256;
  report("sgemm_lds",
         one.measure("sgemm", {a, b, c, words(kN, kN), words(kN, 0)}, kN / 16, kN / 16, 16, 16).by_processor *
             million,
         "M wave-instructions/s");
  const std::vector<std::uint64_t> tiled{
      a, b, c, words(512, 512), words(512, bits(1.0F)), words(bits(0.0F), 0)};
  report("sgemm_register_tiles", one.measure("sgemm_reg", tiled, 4, 4, 256, 1).by_processor * million,
         "M wave-instructions/s");
  // Launch overhead: a kernel of one wave that ends at once.
  report("empty_dispatch", one.measure("fma_loop", {p, 1}, 1, 1, 64, 1).dispatch_wall * 1e6, "us");

  Bench two(2, seconds);
  const std::uint64_t x = two.alloc(4 * kElements), y = two.alloc(4 * kElements),
                      z = two.alloc(4 * kElements);
  const std::vector<std::uint64_t> arguments{x, y, z, words(kN, kN), words(kN, 0)};
  const std::vector<std::uint64_t> same{a, b, c, words(kN, kN), words(kN, 0)};
  const Bench::Rate rate2 = two.measure("sgemm", arguments, kN / 16, kN / 16, 16, 16);
  const Bench::Rate rate1 = one.measure("sgemm", same, kN / 16, kN / 16, 16, 16);
  report("two_threads_over_one", rate2.by_wall / rate1.by_wall, "x");
  // What a second of processor time does on two threads, compared with one: the part of the scaling that a
  // machine with other work to do does not hide.
  report("two_threads_work_a_processor_second", rate2.by_processor / rate1.by_processor, "x");
}

}  // namespace
}  // namespace kerncap::sim

int main(int argc, char** argv) {
  try {
    kerncap::sim::run(argc > 1 ? std::atof(argv[1]) : 0.5);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kerncap-sim-bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
