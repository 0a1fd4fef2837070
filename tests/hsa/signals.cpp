// Signals: operations, waits with limits, async handlers that fire again, waits for several.
#include "hsa_program.h"

namespace {

void operations() {
  hsa_signal_t s = make_signal(5);
  hsa_signal_add_relaxed(s, 3);
  hsa_signal_subtract_screlease(s, 1);
  CHECK_EQ(hsa_signal_load_scacquire(s), 7);
  hsa_signal_and_relaxed(s, 6);
  hsa_signal_or_relaxed(s, 9);
  hsa_signal_xor_relaxed(s, 1);
  CHECK_EQ(hsa_signal_load_relaxed(s), 14);
  CHECK_EQ(hsa_signal_exchange_scacq_screl(s, 2), 14);
  CHECK_EQ(hsa_signal_cas_scacq_screl(s, 1, 9), 2);
  CHECK_EQ(hsa_signal_cas_scacq_screl(s, 2, 9), 2);
  CHECK_EQ(hsa_signal_load_relaxed(s), 9);
  volatile hsa_signal_value_t* value = nullptr;
  OK(hsa_amd_signal_value_pointer(s, &value));
  CHECK(reinterpret_cast<std::uint64_t>(value) == s.handle + 8);  // HIP reads it there
  OK(hsa_signal_destroy(s));
}

void timeouts() {
  hsa_signal_t s = make_signal(1);
  const auto start = std::chrono::steady_clock::now();
  CHECK_EQ(hsa_signal_wait_relaxed(s, HSA_SIGNAL_CONDITION_EQ, 0, kSecond / 10, HSA_WAIT_STATE_BLOCKED), 1);
  const auto waited = std::chrono::steady_clock::now() - start;
  CHECK(waited >= std::chrono::milliseconds(100) && waited < std::chrono::seconds(10));
  std::thread later([s] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    hsa_signal_store_relaxed(s, -4);
  });
  CHECK_EQ(hsa_signal_wait_relaxed(s, HSA_SIGNAL_CONDITION_LT, 0, 60 * kSecond, HSA_WAIT_STATE_BLOCKED), -4);
  later.join();
  OK(hsa_signal_destroy(s));
}

// A value changed in memory, as a kernel does it, is seen although nobody is told.
void changed_behind_our_back() {
  hsa_signal_t s = make_signal(1);
  std::thread later([s] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    __atomic_store_n(&reinterpret_cast<amd_signal_t*>(s.handle)->value, 0, __ATOMIC_RELEASE);
  });
  WAIT_ZERO(s);
  later.join();
  OK(hsa_signal_destroy(s));
}

std::atomic<int> g_calls{0};

void handlers() {
  hsa_signal_t s = make_signal(0);
  // Fires for each value from 1 on, puts the signal back, and stops after the hundredth time.
  static hsa_signal_t done = make_signal(1);
  OK(hsa_amd_signal_async_handler(
      s, HSA_SIGNAL_CONDITION_GTE, 1,
      [](hsa_signal_value_t value, void* arg) {
        CHECK_EQ(value, 1);
        hsa_signal_t signal{reinterpret_cast<std::uint64_t>(arg)};
        const int calls = ++g_calls;
        hsa_signal_store_relaxed(signal, 0);
        if (calls < 100) return true;
        hsa_signal_store_relaxed(done, 0);
        return false;
      },
      reinterpret_cast<void*>(s.handle)));
  for (int i = 0; i < 100; ++i) {
    hsa_signal_store_relaxed(s, 1);
    CHECK_EQ(hsa_signal_wait_relaxed(s, HSA_SIGNAL_CONDITION_EQ, 0, 60 * kSecond, HSA_WAIT_STATE_BLOCKED), 0);
  }
  WAIT_ZERO(done);
  hsa_signal_store_relaxed(s, 1);  // nobody listens any more
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK_EQ(g_calls.load(), 100);
  // A handler whose signal is destroyed before it fires keeps it alive.
  OK(hsa_signal_destroy(s));
}

void many_handlers() {
  constexpr int kSignals = 200;
  static std::atomic<int> fired{0};
  std::vector<hsa_signal_t> signals;
  for (int i = 0; i < kSignals; ++i) {
    signals.push_back(make_signal(1));
    OK(hsa_amd_signal_async_handler(
        signals.back(), HSA_SIGNAL_CONDITION_LT, 1,
        [](hsa_signal_value_t, void*) {
          ++fired;
          return false;
        },
        nullptr));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = t; i < kSignals; i += 4) hsa_signal_subtract_relaxed(signals[i], 1);
    });
  for (auto& thread : threads) thread.join();
  const auto start = std::chrono::steady_clock::now();
  while (fired != kSignals) CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
}

void several() {
  hsa_signal_t s[3] = {make_signal(1), make_signal(1), make_signal(1)};
  hsa_signal_condition_t conditions[3] = {HSA_SIGNAL_CONDITION_EQ, HSA_SIGNAL_CONDITION_EQ,
                                          HSA_SIGNAL_CONDITION_EQ};
  hsa_signal_value_t zeros[3] = {0, 0, 0};
  hsa_signal_value_t value = 9;
  CHECK_EQ(hsa_amd_signal_wait_any(3, s, conditions, zeros, kSecond / 20, HSA_WAIT_STATE_BLOCKED, &value),
           UINT32_MAX);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    hsa_signal_store_relaxed(s[1], 0);
  });
  CHECK_EQ(hsa_amd_signal_wait_any(3, s, conditions, zeros, 60 * kSecond, HSA_WAIT_STATE_BLOCKED, &value), 1);
  CHECK_EQ(value, 0);
  later.join();
  std::thread rest([&] {
    hsa_signal_store_relaxed(s[2], 0);
    hsa_signal_store_relaxed(s[0], 0);
  });
  CHECK_EQ(hsa_amd_signal_wait_all(3, s, conditions, zeros, 60 * kSecond, HSA_WAIT_STATE_BLOCKED, nullptr),
           0);
  rest.join();
}

}  // namespace

int main() {
  FAILS(HSA_STATUS_ERROR_NOT_INITIALIZED, hsa_signal_create(0, 0, nullptr, nullptr));
  OK(hsa_init());
  operations();
  timeouts();
  changed_behind_our_back();
  handlers();
  many_handlers();
  several();
  OK(hsa_shut_down());
  std::puts("signals ok");
}
