// Dispatches: results, order, wrap-around of a small ring, barriers across queues, times, variables. argv[1]:
// code.
#include "hsa_program.h"

namespace {

void adds(const Machine& m, const Module& code) {
  hsa_queue_t* queue = make_queue(m.gpu);
  constexpr std::uint32_t kItems = 1000;
  auto* data = allocate(m.device, kItems);
  for (std::uint32_t i = 0; i < kItems; ++i) data[i] = i;
  hsa_signal_t done = make_signal(1);
  auto packet = dispatch_packet(m, code.kernel("add"), kItems, done, data, kItems);
  submit(queue, &packet);
  WAIT_ZERO(done);
  for (std::uint32_t i = 0; i < kItems; ++i) CHECK_EQ(data[i], i + kItems);
  OK(hsa_queue_destroy(queue));
}

// Five times as many packets as the ring has slots, many before each ring of the doorbell.
void wraps_around(const Machine& m, const Module& code) {
  hsa_queue_t* queue = make_queue(m.gpu, 64);
  CHECK_EQ(queue->size, 64);
  auto* order = allocate(m.device, 400);
  constexpr std::uint32_t kPackets = 320;
  hsa_signal_t done = make_signal(kPackets);
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    auto packet = dispatch_packet(m, code.kernel("append"), 1, done, order, i);
    const std::uint64_t index = write_packet(queue, &packet);
    CHECK_EQ(index, i);
    if (i % 40 == 39) ring(queue, index);
  }
  WAIT_ZERO(done);
  CHECK_EQ(order[0], kPackets);
  for (std::uint32_t i = 0; i < kPackets; ++i) CHECK_EQ(order[1 + i], i);
  CHECK_EQ(hsa_queue_load_read_index_scacquire(queue), kPackets);
  OK(hsa_queue_destroy(queue));
}

// Queue b's kernel runs when queue a's has, through a barrier-AND; one signal of a barrier-OR is enough.
void barriers(const Machine& m, const Module& code) {
  hsa_queue_t *a = make_queue(m.gpu), *b = make_queue(m.gpu);
  CHECK(a->id != b->id);
  auto* order = allocate(m.device, 8);
  hsa_signal_t first = make_signal(1), second = make_signal(1), gate = make_signal(1), never = make_signal(1);
  hsa_barrier_and_packet_t barrier{};
  barrier.header = header(HSA_PACKET_TYPE_BARRIER_AND);
  barrier.dep_signal[0] = first;
  barrier.dep_signal[4] = gate;
  submit(b, &barrier);
  auto late = dispatch_packet(m, code.kernel("append"), 1, second, order, 2u);
  submit(b, &late);
  auto early = dispatch_packet(m, code.kernel("append"), 1, first, order, 1u);
  submit(a, &early);
  WAIT_ZERO(first);
  CHECK_EQ(hsa_signal_wait_relaxed(second, HSA_SIGNAL_CONDITION_EQ, 0, kSecond / 20, HSA_WAIT_STATE_BLOCKED),
           1);
  hsa_signal_store_relaxed(gate, 0);
  WAIT_ZERO(second);
  CHECK(order[0] == 2 && order[1] == 1 && order[2] == 2);

  hsa_signal_t passed = make_signal(1);
  barrier.header = header(HSA_PACKET_TYPE_BARRIER_OR);
  barrier.dep_signal[0] = never;
  barrier.dep_signal[4] = gate;
  barrier.completion_signal = passed;
  submit(a, &barrier);
  WAIT_ZERO(passed);

  // AMD's barrier on a value: (signal & 0xf0) >= 0x20
  hsa_signal_t level = make_signal(0x1f), reached = make_signal(1);
  hsa_amd_barrier_value_packet_t value{};
  value.header.header = header(HSA_PACKET_TYPE_VENDOR_SPECIFIC);
  value.header.AmdFormat = HSA_AMD_PACKET_TYPE_BARRIER_VALUE;
  value.signal = level;
  value.mask = 0xf0;
  value.value = 0x20;
  value.cond = HSA_SIGNAL_CONDITION_GTE;
  value.completion_signal = reached;
  submit(a, &value);
  CHECK_EQ(hsa_signal_wait_relaxed(reached, HSA_SIGNAL_CONDITION_EQ, 0, kSecond / 20, HSA_WAIT_STATE_BLOCKED),
           1);
  hsa_signal_store_relaxed(level, 0x21);
  WAIT_ZERO(reached);
  OK(hsa_queue_destroy(a));
  OK(hsa_queue_destroy(b));  // a barrier that waits does not hold up its queue's end
  hsa_queue_t* c = make_queue(m.gpu);
  barrier.dep_signal[4] = never;
  submit(c, &barrier);
  OK(hsa_queue_destroy(c));
}

void times(const Machine& m, const Module& code) {
  hsa_queue_t* queue = make_queue(m.gpu);
  auto* data = allocate(m.device, 4096);
  hsa_signal_t done = make_signal(1);
  auto packet = dispatch_packet(m, code.kernel("add"), 4096, done, data, 4096u);
  submit(queue, &packet);
  WAIT_ZERO(done);
  hsa_amd_profiling_dispatch_time_t untimed{1, 1};
  OK(hsa_amd_profiling_get_dispatch_time(m.gpu, done, &untimed));
  CHECK(untimed.start == 0 && untimed.end == 0);  // profiling is off
  OK(hsa_amd_profiling_set_profiler_enabled(queue, 1));
  std::uint64_t before = 0, after = 0, last_end = 0, length = 0;
  OK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &before));
  for (int i = 0; i < 3; ++i) {
    hsa_signal_store_relaxed(done, 1);
    submit(queue, &packet);
    WAIT_ZERO(done);
    hsa_amd_profiling_dispatch_time_t time{};
    OK(hsa_amd_profiling_get_dispatch_time(m.gpu, done, &time));
    CHECK(time.start >= before - 10 && time.start >= last_end && time.end > time.start);
    if (i > 0) CHECK_EQ(time.end - time.start, length);  // simulated: the same every time
    length = time.end - time.start;
    last_end = time.end;
    const auto* raw = reinterpret_cast<const amd_signal_t*>(done.handle);
    CHECK(raw->start_ts * 10 == time.start && raw->end_ts * 10 == time.end);  // ticks of 100 MHz
  }
  OK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &after));
  CHECK(after >= last_end);
  OK(hsa_queue_destroy(queue));
}

void variables(const Machine& m, const Module& code) {
  hsa_executable_symbol_t bias = code.symbol("bias");
  hsa_symbol_kind_t kind;
  std::uint64_t address = 0;
  std::uint32_t size = 0, length = 0;
  OK(hsa_executable_symbol_get_info(bias, HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind));
  OK(hsa_executable_symbol_get_info(bias, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &address));
  OK(hsa_executable_symbol_get_info(bias, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE, &size));
  OK(hsa_executable_symbol_get_info(bias, HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH, &length));
  CHECK(kind == HSA_SYMBOL_KIND_VARIABLE && size == 4 && length == 4);
  CHECK_EQ(*reinterpret_cast<std::uint32_t*>(address), 7);
  *reinterpret_cast<std::uint32_t*>(address) = 9;
  hsa_queue_t* queue = make_queue(m.gpu);
  auto* out = allocate(m.device, 2);
  hsa_signal_t done = make_signal(1);
  auto packet = dispatch_packet(m, code.kernel("variables"), 1, done, out);
  submit(queue, &packet);
  WAIT_ZERO(done);
  CHECK_EQ(out[0], 27);
  CHECK_EQ(out[1], 40);  // through a pointer that was relocated
  CHECK_EQ(*reinterpret_cast<std::uint32_t*>(address), 100);
  // HIP's own copy kernel writes __constant__ variables, whose segment says read-only.
  OK(hsa_executable_symbol_get_info(code.symbol("scale"), HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS,
                                    &address));
  hsa_signal_store_relaxed(done, 1);
  auto set = dispatch_packet(m, code.kernel("store"), 1, done, address, 5u);
  set.grid_size_x = set.workgroup_size_x = 1;
  submit(queue, &set);
  WAIT_ZERO(done);
  hsa_signal_store_relaxed(done, 1);
  submit(queue, &packet);
  WAIT_ZERO(done);
  CHECK_EQ(out[0], 500);
  // Kernels that look at their own packet find it in the ring.
  hsa_signal_store_relaxed(done, 1);
  auto own = dispatch_packet(m, code.kernel("own_packet"), 192, done, out);
  submit(queue, &own);
  WAIT_ZERO(done);
  CHECK_EQ(out[0], 192);
  OK(hsa_queue_destroy(queue));
}

// A running kernel does not stop the program from allocating, copying and loading.
void nothing_blocks(const Machine& m, const Module& code, const char* path) {
  hsa_queue_t* queue = make_queue(m.gpu);
  auto* flag = allocate(m.device, 2);
  hsa_signal_t done = make_signal(1);
  auto packet = dispatch_packet(m, code.kernel("wait_for_flag"), 1, done, flag, flag + 1);
  submit(queue, &packet);
  CHECK_EQ(hsa_signal_wait_relaxed(done, HSA_SIGNAL_CONDITION_EQ, 0, kSecond / 20, HSA_WAIT_STATE_BLOCKED),
           1);
  for (int i = 0; i < 50; ++i) OK(hsa_amd_memory_pool_free(allocate(m.device, 100000)));
  Module again = load_module(m.gpu, path);
  OK(hsa_executable_destroy(again.executable));
  auto* source = allocate(m.host_fine, 1, m.gpus);
  *source = 77;
  hsa_signal_t copied = make_signal(1);
  OK(hsa_amd_memory_async_copy(flag, m.gpu, source, m.cpus[0], 4, 0, nullptr, copied));
  WAIT_ZERO(copied);
  WAIT_ZERO(done);
  CHECK_EQ(flag[1], 77);
  OK(hsa_queue_destroy(queue));
  // A queue whose kernel never ends can be destroyed.
  hsa_queue_t* stuck = make_queue(m.gpu);
  *flag = 0;
  auto endless = dispatch_packet(m, code.kernel("endless"), 1, hsa_signal_t{0}, flag);
  submit(stuck, &endless);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  OK(hsa_queue_destroy(stuck));
}

}  // namespace

int main(int, char** argv) {
  Machine m = open_machine();
  Module code = load_module(m.gpu, argv[1]);
  adds(m, code);
  wraps_around(m, code);
  barriers(m, code);
  times(m, code);
  variables(m, code);
  nothing_blocks(m, code, argv[1]);
  OK(hsa_executable_destroy(code.executable));
  OK(hsa_shut_down());
  std::puts("dispatch ok");
}
