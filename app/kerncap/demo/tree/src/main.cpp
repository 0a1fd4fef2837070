// A small quantised transformer decoder with random weights. It decodes greedily on the GPU, prints the
// tokens and a checksum of all logits, and checks every logit against the same decoder on the host.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "decoder.h"
#include "reference.h"

namespace {

// The device's exp, sin and cos, its order of additions and its fused multiply-adds differ from the host's in
// the last bits. That moves some quantised activations by one step. (The choice of an expert, which it may
// move too, the host follows: Reference::step.) Logits have a spread of about 1; a kernel that is wrong
// changes them by about that much.
constexpr double kRmsLimit = 0.03;
constexpr double kLimit = 0.25;

struct Options {
  int tokens = 18;
  unsigned long long seed = 3;
  bool check = true;
};

[[noreturn]] void usage(const char* problem) {
  std::fprintf(stderr, "decode: %s\nusage: decode [--tokens N] [--seed N] [--no-check]\n", problem);
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--no-check") {
      options.check = false;
      continue;
    }
    if ((word != "--tokens" && word != "--seed") || i + 1 >= argc)
      usage(("unknown or incomplete option " + word).c_str());
    char* end = nullptr;
    const unsigned long long value = std::strtoull(argv[++i], &end, 10);
    if (end == argv[i] || *end != '\0') usage((word + " takes a number").c_str());
    if (word == "--seed") {
      options.seed = value;
    } else if (value < 1 || value > 4096) {
      usage("--tokens takes 1 to 4096");
    } else {
      options.tokens = static_cast<int>(value);
    }
  }
  return options;
}

// Code objects lie in kernels/ beside the program.
std::string kernel_folder() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  const std::string self(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return self.substr(0, self.rfind('/') + 1) + "kernels";
}

class Checksum {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < bytes; ++i) value_ = (value_ ^ at[i]) * 0x100000001b3ull;  // FNV-1a
  }
  unsigned long long value() const { return value_; }

 private:
  unsigned long long value_ = 0xcbf29ce484222325ull;
};

// How far the device's logits are from the host's, and whether its tokens are the best ones or as good as
// them.
class Difference {
 public:
  void add(const std::vector<float>& device, const std::vector<float>& host, int token) {
    for (std::size_t i = 0; i < host.size(); ++i) {
      const double d = std::fabs(static_cast<double>(device[i]) - host[i]);
      if (!(d <= highest_)) highest_ = d;  // a NaN stays
      squares_ += d * d;
    }
    count_ += host.size();
    const float best = *std::max_element(host.begin(), host.end());
    const bool known = token >= 0 && static_cast<std::size_t>(token) < host.size();
    if (!known || !(host[static_cast<std::size_t>(token)] >= best - 2 * kLimit)) token_differs_ = true;
  }
  bool ok() const { return rms() <= kRmsLimit && highest_ <= kLimit && !token_differs_; }
  double rms() const { return std::sqrt(squares_ / static_cast<double>(count_)); }
  double highest() const { return highest_; }
  bool token_differs() const { return token_differs_; }

 private:
  double highest_ = 0.0;
  double squares_ = 0.0;
  std::size_t count_ = 0;
  bool token_differs_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  hipDeviceProp_t device;
  HIP_CHECK(hipGetDeviceProperties(&device, 0));
  const Config config;
  const Model model = make_model(config, options.seed);
  Decoder decoder(model, kernel_folder(), options.tokens);
  Reference reference(model);
  std::printf("decoder of %d layers, %d wide, on %s (%s)\n", config.layers, config.embd, device.name,
              device.gcnArchName);

  Checksum checksum;
  Difference difference;
  int token = 1;
  decoder.start(token);
  std::printf("tokens:");
  for (int i = 0; i < options.tokens; ++i) {
    std::vector<float> logits;
    std::vector<int> experts;
    const int next = decoder.step(&logits, &experts);
    checksum.add(&next, sizeof(next));
    checksum.add(logits.data(), logits.size() * sizeof(float));
    if (options.check) difference.add(logits, reference.step(token, experts), next);
    std::printf(" %d", next);
    token = next;
  }
  std::printf("\n%ld kernel launches, checksum %016llx\n", Kernel::launches, checksum.value());
  if (!options.check) return 0;
  const bool ok = difference.ok() && reference.wrong_choices() == 0;
  std::printf(
      "logits against the host's: rms difference %.4f (limit %.2f), largest %.4f (limit %.2f)%s%s: %s\n",
      difference.rms(), kRmsLimit, difference.highest(), kLimit,
      difference.token_differs() ? ", and a token differs" : "",
      reference.wrong_choices() != 0 ? ", and an expert was chosen wrongly" : "", ok ? "ok" : "WRONG");
  return ok ? 0 : 1;
}
