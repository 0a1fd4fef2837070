// A fault: reported with its address, the queue dead, others alive. argv: code, what to do wrong, [none] no
// handlers.
#include <dlfcn.h>
#include <sys/mman.h>

#include "hsa_program.h"
#include "sim/hsa/kerncap_sim.h"

namespace {

std::atomic<int> g_status{0}, g_events{0};
std::atomic<std::uint64_t> g_address{0}, g_reason{0};
std::atomic<hsa_queue_t*> g_source{nullptr};

void on_error(hsa_status_t status, hsa_queue_t* source, void* data) {
  CHECK(data == &g_status);
  g_source = source;
  g_status = status;
}

hsa_status_t on_event(const hsa_amd_event_t* event, void*) {
  CHECK(event->event_type == HSA_AMD_GPU_MEMORY_FAULT_EVENT);
  g_address = event->memory_fault.virtual_address;
  g_reason = event->memory_fault.fault_reason_mask;
  ++g_events;
  return HSA_STATUS_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  Machine m = open_machine();
  const std::string what = argv[2];
  const bool handled = argc < 4;
  Module code = load_module(m.gpu, argv[1]);
  if (handled) OK(hsa_amd_register_system_event_handler(on_event, nullptr));
  hsa_queue_t* queue = handled ? make_queue(m.gpu, 64, on_error, &g_status) : make_queue(m.gpu);
  hsa_signal_t done = make_signal(1);
  std::uint64_t address = 0;
  int expected = HSA_STATUS_ERROR_MEMORY_FAULT;
  hsa_kernel_dispatch_packet_t packet{};
  auto store_at = [&](std::uint64_t where) {
    address = where;
    packet = dispatch_packet(m, code.kernel("store"), 64, done, where, 1u);
  };
  if (what == "null") {
    store_at(0);
  } else if (what == "past_the_end") {
    store_at(reinterpret_cast<std::uint64_t>(allocate<char>(m.device, 4096)) + 4096);
  } else if (what == "freed") {
    auto* data = allocate<char>(m.device, 4096);
    store_at(reinterpret_cast<std::uint64_t>(data));
    OK(hsa_amd_memory_pool_free(data));  // last: another allocation would take its place
  } else if (what == "host") {           // memory of the program that was never given to the GPU
    store_at(reinterpret_cast<std::uint64_t>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
  } else if (what == "code") {
    const auto* kernel = reinterpret_cast<const amd_kernel_descriptor_t*>(code.kernel("add"));
    store_at(code.kernel("add") + static_cast<std::uint64_t>(kernel->kernel_code_entry_byte_offset));
  } else if (what == "trap") {
    packet = dispatch_packet(m, code.kernel("trap"), 1, done);
    expected = HSA_STATUS_ERROR_EXCEPTION;
  } else if (what == "time") {
    auto* flag = allocate(m.device, 1);
    packet = dispatch_packet(m, code.kernel("endless"), 1, done, flag);
    expected = HSA_STATUS_ERROR_EXCEPTION;
  } else if (what == "packet") {
    packet.header = header(HSA_PACKET_TYPE_AGENT_DISPATCH);
    expected = HSA_STATUS_ERROR_INVALID_PACKET_FORMAT;
  } else {
    die(__FILE__, __LINE__, "what is " + what + "?");
  }
  submit(queue, &packet);
  if (!handled) {
    std::this_thread::sleep_for(std::chrono::seconds(60));
    die(__FILE__, __LINE__, "the program should have been aborted");
  }
  for (int i = 0; g_status == 0 && i < 600; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK_EQ(g_status.load(), expected);
  CHECK(g_source == queue);
  CHECK_EQ(hsa_signal_load_relaxed(done), 1);  // never completed
  if (expected == HSA_STATUS_ERROR_MEMORY_FAULT) {
    CHECK_EQ(g_events.load(), 1);
    CHECK_EQ(g_address.load(), address);
    CHECK_EQ(g_reason.load(),
             what == "code" ? HSA_AMD_MEMORY_FAULT_READ_ONLY : HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT);
    auto last =
        reinterpret_cast<decltype(&kerncap_sim_last_fault)>(dlsym(RTLD_DEFAULT, "kerncap_sim_last_fault"));
    char text[4096];
    std::uint64_t touched = 1;
    CHECK(last(text, sizeof text, &touched) > 0 && touched == address);
    CHECK(std::strstr(text, "store") != nullptr);
  }
  // The queue runs nothing more; another one does.
  auto* data = allocate(m.device, 64);
  auto add = dispatch_packet(m, code.kernel("add"), 64, done, data, 64u);
  submit(queue, &add);
  CHECK_EQ(hsa_signal_wait_relaxed(done, HSA_SIGNAL_CONDITION_EQ, 0, kSecond / 10, HSA_WAIT_STATE_BLOCKED),
           1);
  hsa_queue_t* other = make_queue(m.gpu);
  submit(other, &add);
  WAIT_ZERO(done);
  CHECK_EQ(data[63], 64);
  OK(hsa_queue_destroy(queue));
  OK(hsa_queue_destroy(other));
  OK(hsa_shut_down());
  std::puts("fault ok");
}
