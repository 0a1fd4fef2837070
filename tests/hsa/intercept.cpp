// Intercept queues: chain of handlers, batches, rewriting, overflow, rings from a callback. argv[1]: code.
#include <dlfcn.h>

#include "hsa_program.h"

namespace {

decltype(AmdExtTable::hsa_amd_queue_intercept_create_fn) intercept_create;
decltype(AmdExtTable::hsa_amd_queue_intercept_register_fn) intercept_register;

struct Seen {
  std::vector<std::uint64_t> batches;  // packets a call
  std::vector<std::uint64_t> first;    // index of the first packet of each call
  std::vector<int>* order = nullptr;
  int number = 0;
};

hsa_queue_t* make_intercept(const Machine& m, std::uint32_t size) {
  hsa_queue_t* queue = nullptr;
  OK(intercept_create(m.gpu, size, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX, UINT32_MAX, &queue));
  return queue;
}

void pass_on(const void* packets, std::uint64_t count, std::uint64_t index, void* data,
             hsa_amd_queue_intercept_packet_writer writer) {
  auto* seen = static_cast<Seen*>(data);
  seen->batches.push_back(count);
  seen->first.push_back(index);
  if (seen->order != nullptr) seen->order->push_back(seen->number);
  writer(packets, count);
}

void batches(const Machine& m, const Module& code, bool single) {
  hsa_queue_t* plain = make_queue(m.gpu);
  Seen seen;
  FAILS(HSA_STATUS_ERROR_INVALID_QUEUE, intercept_register(plain, pass_on, &seen));
  hsa_queue_t* queue = make_intercept(m, 64);
  CHECK(queue->id != plain->id);
  OK(intercept_register(queue, pass_on, &seen));
  auto* order = allocate(m.device, 64);
  hsa_signal_t done = make_signal(5);
  std::uint64_t last = 0;
  for (std::uint32_t i = 0; i < 5; ++i) {
    auto packet = dispatch_packet(m, code.kernel("append"), 1, done, order, i + 1);
    last = write_packet(queue, &packet);
  }
  CHECK(seen.batches.empty());
  ring(queue, last);
  WAIT_ZERO(done);
  const std::vector<std::uint64_t> wanted =
      single ? std::vector<std::uint64_t>(5, 1) : std::vector<std::uint64_t>{5};
  CHECK(seen.batches == wanted);
  CHECK_EQ(seen.first[0], 0);
  for (std::uint32_t i = 0; i < 5; ++i) CHECK_EQ(order[1 + i], i + 1);
  // A packet that is not written yet holds up those behind it.
  const std::uint64_t hole = hsa_queue_add_write_index_relaxed(queue, 1);
  hsa_signal_store_relaxed(done, 2);
  auto packet = dispatch_packet(m, code.kernel("append"), 1, done, order, 9u);
  ring(queue, write_packet(queue, &packet));
  CHECK_EQ(hsa_signal_wait_relaxed(done, HSA_SIGNAL_CONDITION_LT, 2, kSecond / 20, HSA_WAIT_STATE_BLOCKED),
           2);
  char* slot = static_cast<char*>(queue->base_address) + (hole & (queue->size - 1)) * 64;
  std::memcpy(slot + 2, reinterpret_cast<char*>(&packet) + 2, 62);
  __atomic_store_n(reinterpret_cast<std::uint16_t*>(slot), packet.header, __ATOMIC_RELEASE);
  ring(queue, hole);
  WAIT_ZERO(done);
  OK(hsa_queue_destroy(queue));
  OK(hsa_queue_destroy(plain));
}

void chain(const Machine& m, const Module& code) {
  hsa_queue_t* queue = make_intercept(m, 64);
  std::vector<int> order;
  Seen first{{}, {}, &order, 1}, second{{}, {}, &order, 2};
  OK(intercept_register(queue, pass_on, &first));
  OK(intercept_register(queue, pass_on, &second));
  auto* data = allocate(m.device, 64);
  hsa_signal_t done = make_signal(1);
  auto packet = dispatch_packet(m, code.kernel("add"), 64, done, data, 64u);
  submit(queue, &packet);
  WAIT_ZERO(done);
  CHECK(order == std::vector<int>{2, 1});  // registered last, called first
  OK(hsa_queue_destroy(queue));
}

// What a capture does: the target is fenced by barriers that wait for the tool, in one call of the writer.
struct Fence {
  std::uint64_t target = 0;
  hsa_signal_t reached{}, go{}, target_done{}, release{};
  bool armed = true;
};

void fence(const void* packets, std::uint64_t count, std::uint64_t, void* data,
           hsa_amd_queue_intercept_packet_writer writer) {
  auto* f = static_cast<Fence*>(data);
  std::vector<hsa_kernel_dispatch_packet_t> out;
  const auto* in = static_cast<const hsa_kernel_dispatch_packet_t*>(packets);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!f->armed || in[i].kernel_object != f->target ||
        (in[i].header & 0xff) != HSA_PACKET_TYPE_KERNEL_DISPATCH) {
      out.push_back(in[i]);
      continue;
    }
    f->armed = false;
    auto barrier = [&out](hsa_signal_t dep, hsa_signal_t completion) {
      hsa_barrier_and_packet_t b{};
      b.header = header(HSA_PACKET_TYPE_BARRIER_AND);
      b.dep_signal[0] = dep;
      b.completion_signal = completion;
      hsa_kernel_dispatch_packet_t raw;
      std::memcpy(static_cast<void*>(&raw), &b, 64);
      out.push_back(raw);
    };
    barrier({0}, f->reached);
    barrier(f->go, {0});
    out.push_back(in[i]);
    out.back().completion_signal = f->target_done;
    barrier(f->release, {0});
  }
  writer(out.data(), out.size());
}

void capture(const Machine& m, const Module& code) {
  hsa_queue_t* queue = make_intercept(m, 64);
  auto* order = allocate(m.device, 16);
  auto* data = allocate(m.device, 64);
  Fence f{code.kernel("add"), make_signal(1), make_signal(1), make_signal(1), make_signal(1)};
  OK(intercept_register(queue, fence, &f));
  hsa_signal_t done = make_signal(1);
  auto before = dispatch_packet(m, code.kernel("append"), 1, {0}, order, 1u);
  auto target = dispatch_packet(m, code.kernel("add"), 64, done, data, 64u);
  auto after = dispatch_packet(m, code.kernel("append"), 1, {0}, order, 2u);
  write_packet(queue, &before);
  write_packet(queue, &target);
  ring(queue, write_packet(queue, &after));  // does not block
  WAIT_ZERO(f.reached);
  CHECK(order[0] == 1 && data[0] == 0);  // what came before ran, the target did not
  hsa_signal_store_relaxed(f.go, 0);
  WAIT_ZERO(f.target_done);
  CHECK(data[63] == 64 && order[0] == 1);  // the target ran, what comes after did not
  hsa_signal_subtract_screlease(done, 1);
  hsa_signal_store_relaxed(f.release, 0);
  hsa_signal_t last = make_signal(1);
  auto end = dispatch_packet(m, code.kernel("append"), 1, last, order, 3u);
  submit(queue, &end);
  WAIT_ZERO(last);
  CHECK(order[0] == 3 && order[2] == 2 && order[3] == 3);
  OK(hsa_queue_destroy(queue));
}

// Each packet becomes four: the hardware queue overflows, and nothing is lost, repeated or out of order.
void quadruple(const void* packets, std::uint64_t count, std::uint64_t, void*,
               hsa_amd_queue_intercept_packet_writer writer) {
  std::vector<hsa_kernel_dispatch_packet_t> out;
  for (std::uint64_t i = 0; i < count; ++i)
    out.insert(out.end(), 4, static_cast<const hsa_kernel_dispatch_packet_t*>(packets)[i]);
  writer(out.data(), out.size());
}

void overflow(const Machine& m, const Module& code) {
  hsa_queue_t* queue = make_intercept(m, 64);
  OK(intercept_register(queue, quadruple, nullptr));
  constexpr std::uint32_t kPackets = 200;
  auto* order = allocate(m.device, 4 * kPackets + 1);
  hsa_signal_t done = make_signal(4 * kPackets);
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    auto packet = dispatch_packet(m, code.kernel("append"), 1, done, order, i);
    ring(queue, write_packet(queue, &packet));
  }
  WAIT_ZERO(done);
  CHECK_EQ(order[0], 4 * kPackets);
  for (std::uint32_t i = 0; i < 4 * kPackets; ++i) CHECK_EQ(order[1 + i], i / 4);
  OK(hsa_queue_destroy(queue));
}

// A handler that dispatches on another intercept queue: the ring is served after the callback.
struct Other {
  hsa_queue_t* queue;
  hsa_kernel_dispatch_packet_t packet;
  bool done = false;
};

void ring_another(const void* packets, std::uint64_t count, std::uint64_t, void* data,
                  hsa_amd_queue_intercept_packet_writer writer) {
  auto* other = static_cast<Other*>(data);
  if (!other->done) {
    other->done = true;
    submit(other->queue, &other->packet);
  }
  writer(packets, count);
}

void reentrant(const Machine& m, const Module& code) {
  hsa_queue_t *a = make_intercept(m, 64), *b = make_intercept(m, 64);
  auto* data = allocate(m.device, 64);
  hsa_signal_t mine = make_signal(1), theirs = make_signal(1);
  Seen seen;
  OK(intercept_register(b, pass_on, &seen));
  Other other{b, dispatch_packet(m, code.kernel("add"), 64, theirs, data, 64u)};
  OK(intercept_register(a, ring_another, &other));
  auto packet = dispatch_packet(m, code.kernel("add"), 64, mine, data, 64u);
  submit(a, &packet);
  WAIT_ZERO(mine);
  WAIT_ZERO(theirs);
  CHECK_EQ(data[63], 128);
  CHECK_EQ(seen.batches.size(), 1);
  OK(hsa_queue_destroy(a));
  OK(hsa_queue_destroy(b));
}

// Several threads dispatch on one intercept queue.
void contended(const Machine& m, const Module& code) {
  hsa_queue_t* queue = make_intercept(m, 128);
  Seen seen;
  OK(intercept_register(queue, pass_on, &seen));
  auto* order = allocate(m.device, 1000);
  constexpr int kThreads = 4, kEach = 100;
  hsa_signal_t done = make_signal(kThreads * kEach);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        auto packet = dispatch_packet(m, code.kernel("append"), 1, done, order, 1u);
        submit(queue, &packet);
      }
    });
  for (auto& thread : threads) thread.join();
  WAIT_ZERO(done);
  CHECK_EQ(order[0], kThreads * kEach);
  std::uint64_t packets = 0;
  for (std::uint64_t n : seen.batches) packets += n;
  CHECK_EQ(packets, kThreads * kEach);
  OK(hsa_queue_destroy(queue));
}

}  // namespace

// This program is its own tool: the runtime finds HSA_AMD_TOOL_PRIORITY in the library beside it.
extern "C" __attribute__((visibility("default"))) void take_table(HsaApiTable* table) {
  intercept_create = table->amd_ext_->hsa_amd_queue_intercept_create_fn;
  intercept_register = table->amd_ext_->hsa_amd_queue_intercept_register_fn;
}

int main(int argc, char** argv) {
  Machine m = open_machine();
  CHECK(intercept_create != nullptr);
  CHECK(dlsym(RTLD_DEFAULT, "hsa_amd_queue_intercept_create") == nullptr);  // only through the table
  Module code = load_module(m.gpu, argv[1]);
  batches(m, code, argc > 2 && std::string(argv[2]) == "single");
  chain(m, code);
  capture(m, code);
  overflow(m, code);
  reentrant(m, code);
  contended(m, code);
  OK(hsa_shut_down());
  std::puts("intercept ok");
}
