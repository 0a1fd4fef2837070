// What the hook in a Python program (app/kerncap/triton_hook/) tells of Triton while the program runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace kerncap::interpose {

// Launches of one kernel in this process, on all devices: with one id they are one kernel to whoever asks for
// the nth.
struct Calls {
  std::atomic<std::uint64_t> all{0};
  std::atomic<std::uint64_t> timed{0};  // of those: made by an autotuner, to time a candidate

  // Counts launches of this thread; the number of the last of them, from 1.
  std::uint64_t count(std::uint64_t launches = 1);
  // Launches that this thread counted came to nothing.
  void withdraw(std::uint64_t launches = 1);
};

// Whether this thread's launches are an autotuner's, which times its candidates by them: no launch that a
// kernel's name means.
bool is_tuning();
void set_tuning(bool begins);

// Code that Triton made. Returns the id of its kernel `symbol`.
std::uint64_t add_triton_code(const std::string& symbol, std::string_view code);
bool made_by_triton(std::uint64_t code_hash);

// A kernel's id in this process's statistics and in captures.
std::uint64_t kernel_id(const std::string& symbol, std::uint64_t code_hash);

}  // namespace kerncap::interpose
