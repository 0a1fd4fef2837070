// device.h for the host: the oracle. Runs a grid one workgroup after the other; a work-item is a
// fiber that runs until it meets a barrier or a cross-lane operation, where it waits for its
// workgroup or its wave of 64. A kernel in which only a part of a wave's live work-items reaches a cross-lane
// operation is outside what this models, and is reported rather than guessed at.
//
// Nothing here is derived from the simulator: every operation is written from its definition in
// the ISA manual ("AMD Instinct MI300 Instruction Set Architecture") on whole matrices and lanes.
#pragma once

// The few names it needs of libc: compiled without any header, as the device side is.
extern "C" int dprintf(int fd, const char* format, ...);

#define __device__
#define __global__
#define __shared__ static
#define __constant__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(host_grid::dynamic_lds)
#define warpSize 64u
#define EXPORT extern "C" __attribute__((visibility("default")))

struct HostIndex {
  uint x, y, z;
};

inline HostIndex threadIdx, blockIdx, blockDim, gridDim;

namespace host_grid {

constexpr unsigned kWave = 64;
constexpr unsigned kMaxItems = 1024;
constexpr size_t kStack = 64 << 10;
constexpr size_t kSlot = 256;  // bytes a lane can put into one cross-lane operation

enum class State : unsigned char { done, ready, barrier, exchange };

struct Item {
  void* sp = nullptr;
  State state = State::done;
  HostIndex index{};
  unsigned exchanges = 0;   // how many this work-item has entered; its parity picks the slots
  unsigned filled[2] = {};  // the exchange that each slot was filled for
  alignas(16) unsigned char slot[2][kSlot] = {};
};

inline Item items[kMaxItems];
inline unsigned item_count = 0, current = 0;
inline void* scheduler_sp = nullptr;
inline void (*body)(const unsigned char*) = nullptr;
inline const unsigned char* body_arguments = nullptr;
alignas(64) inline unsigned char dynamic_lds[64 << 10];
alignas(64) inline unsigned char stacks[kStack * kMaxItems];

// Saves the callee-saved registers of the System V x86-64 ABI on this stack, and continues on the other.
extern "C" void host_grid_switch(void** save, void* to);
__asm__(
    ".weak host_grid_switch\nhost_grid_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

inline void wait_in(State state) {
  unsigned self = current;
  items[self].state = state;
  host_grid_switch(&items[self].sp, scheduler_sp);
}

inline void item_main() {
  body(body_arguments);
  wait_in(State::done);
  __builtin_abort();  // a finished work-item is never resumed
}

inline void resume(unsigned i) {
  current = i;
  threadIdx = items[i].index;
  items[i].state = State::ready;
  host_grid_switch(&scheduler_sp, items[i].sp);
}

// Lets the items of [from, to) go on if every live one of them waits in `state`.
inline bool release(unsigned from, unsigned to, State state) {
  bool any = false;
  for (unsigned i = from; i < to; i++) {
    if (items[i].state == State::done) continue;
    if (items[i].state != state) return false;
    any = true;
  }
  if (any)
    for (unsigned i = from; i < to; i++)
      if (items[i].state == state) items[i].state = State::ready;
  return any;
}

inline void run_workgroup() {
  item_count = blockDim.x * blockDim.y * blockDim.z;
  if (item_count > kMaxItems) {
    dprintf(2, "host grid: %u work-items in a workgroup, at most %u\n", item_count, kMaxItems);
    __builtin_abort();
  }
  for (unsigned i = 0; i < item_count; i++) {
    Item& item = items[i];
    item.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
    item.exchanges = item.filled[0] = item.filled[1] = 0;
    item.state = State::ready;
    void** top = reinterpret_cast<void**>(stacks + kStack * (i + 1)) - 2;
    top[0] = reinterpret_cast<void*>(&item_main);  // where `ret` goes; leaves the stack as after a call
    top[1] = nullptr;
    item.sp = top - 6;
    __builtin_memset(item.sp, 0, 6 * sizeof(void*));
  }
  for (;;) {
    bool ran = false;
    for (unsigned i = 0; i < item_count; i++)
      while (items[i].state == State::ready) resume(i), ran = true;
    bool live = false;
    for (unsigned w = 0; w < item_count; w += kWave)
      ran |= release(w, w + kWave < item_count ? w + kWave : item_count, State::exchange);
    ran |= release(0, item_count, State::barrier);
    for (unsigned i = 0; i < item_count; i++) live |= items[i].state != State::done;
    if (!live) return;
    if (!ran) {
      dprintf(2, "host grid: work-items wait for each other in different places\n");
      __builtin_abort();
    }
  }
}

inline void run_grid(void (*kernel)(const unsigned char*), const unsigned char* arguments, const uint* grid,
                     const uint* block) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  body = kernel;
  body_arguments = arguments;
  for (uint z = 0; z < grid[2]; z++)
    for (uint y = 0; y < grid[1]; y++)
      for (uint x = 0; x < grid[0]; x++) {
        blockIdx = {x, y, z};
        run_workgroup();
      }
}

// What every lane of the wave put into exchange `number`; `active` where there was such a lane (it may have
// finished since).
struct Lanes {
  const Item* wave;
  unsigned number, count;

  bool active(int lane) const {
    return lane >= 0 && static_cast<unsigned>(lane) < count && wave[lane].filled[number & 1] == number;
  }

  template <class T>
  T get(int lane) const {
    T value{};
    if (active(lane)) __builtin_memcpy(&value, wave[lane].slot[number & 1], sizeof(T));
    return value;
  }
};

template <class T>
inline Lanes exchange(const T& mine) {
  static_assert(sizeof(T) <= kSlot);
  Item& self = items[current];
  unsigned number = ++self.exchanges;
  self.filled[number & 1] = number;
  __builtin_memcpy(self.slot[number & 1], &mine, sizeof(T));
  unsigned base = current / kWave * kWave;
  wait_in(State::exchange);
  return {items + base, number, item_count - base < kWave ? item_count - base : kWave};
}

inline int lane() { return static_cast<int>(current % kWave); }

// Calls `kernel` with arguments laid out as in a kernarg segment: each at its natural alignment.
template <class... A>
struct Unpack;

template <>
struct Unpack<> {
  template <class F, class... Got>
  static void call(F f, const unsigned char*, size_t, Got... got) {
    f(got...);
  }
};

template <class A, class... Rest>
struct Unpack<A, Rest...> {
  template <class F, class... Got>
  static void call(F f, const unsigned char* bytes, size_t offset, Got... got) {
    offset = (offset + alignof(A) - 1) / alignof(A) * alignof(A);
    A a;
    __builtin_memcpy(static_cast<void*>(&a), bytes + offset, sizeof(A));
    Unpack<Rest...>::call(f, bytes, offset + sizeof(A), got..., a);
  }
};
template <auto F>
struct Kernel;

template <class... A, void (*F)(A...)>
struct Kernel<F> {
  static void invoke(const unsigned char* arguments) { Unpack<A...>::call(F, arguments, 0); }
};

}  // namespace host_grid

// Exports `run_NAME(kernarg bytes, grid in workgroups, block)`.
#define HOST_KERNEL(name)                                                                       \
  EXPORT void run_##name(const unsigned char* arguments, const uint* grid, const uint* block) { \
    host_grid::run_grid(&host_grid::Kernel<name>::invoke, arguments, grid, block);              \
  }

inline void __syncthreads() { host_grid::wait_in(host_grid::State::barrier); }

inline void __threadfence() {}

inline int __lane_id() { return host_grid::lane(); }

#include "host_builtins.h"
