#include "interpose/common/triton.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_set>

#include "snapshot/xxh64.h"

namespace kerncap::interpose {
namespace {

thread_local int tunings = 0;

struct Made {
  std::shared_mutex mutex;
  std::unordered_set<std::uint64_t> hashes;
};

Made& made() {
  static auto* all = new Made;  // kernels are loaded until the process ends
  return *all;
}

}  // namespace

std::uint64_t Calls::count(std::uint64_t launches) {
  if (is_tuning()) timed.fetch_add(launches, std::memory_order_relaxed);
  return all.fetch_add(launches, std::memory_order_relaxed) + launches;
}

void Calls::withdraw(std::uint64_t launches) {
  if (is_tuning()) timed.fetch_sub(launches, std::memory_order_relaxed);
  all.fetch_sub(launches, std::memory_order_relaxed);
}

bool is_tuning() { return tunings > 0; }

void set_tuning(bool begins) {
  if (begins) {
    ++tunings;
  } else if (tunings > 0) {
    --tunings;
  }
}

std::uint64_t kernel_id(const std::string& symbol, std::uint64_t code_hash) {
  return snapshot::xxh64(symbol.data(), symbol.size(), code_hash);
}

std::uint64_t add_triton_code(const std::string& symbol, std::string_view code) {
  const std::uint64_t hash = snapshot::xxh64(code.data(), code.size());
  const std::unique_lock lock(made().mutex);
  made().hashes.insert(hash);
  return kernel_id(symbol, hash);
}

bool made_by_triton(std::uint64_t code_hash) {
  const std::shared_lock lock(made().mutex);
  return made().hashes.contains(code_hash);
}

}  // namespace kerncap::interpose
