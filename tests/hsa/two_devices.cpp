// Two GPUs: each its own memory and code; access to the other's only once allowed. argv[1]: code.
#include "hsa_program.h"

namespace {
std::atomic<int> g_status{0};
void on_error(hsa_status_t status, hsa_queue_t*, void*) { g_status = status; }
}  // namespace

int main(int, char** argv) {
  Machine m = open_machine();
  CHECK_EQ(m.gpus.size(), 2);
  char uuid[2][21];
  std::uint32_t bdf[2];
  for (int i = 0; i < 2; ++i) {
    OK(hsa_agent_get_info(m.gpus[i], HSA_AMD_AGENT_INFO_UUID, uuid[i]));
    OK(hsa_agent_get_info(m.gpus[i], HSA_AMD_AGENT_INFO_BDFID, &bdf[i]));
  }
  CHECK(std::string(uuid[0]) != uuid[1] && bdf[0] != bdf[1]);
  Module code[2] = {load_module(m.gpus[0], argv[1]), load_module(m.gpus[1], argv[1])};
  hsa_queue_t* queues[2] = {make_queue(m.gpus[0]), make_queue(m.gpus[1], 64, on_error)};
  auto* data = allocate(m.device, 1024);  // of the first
  OK(hsa_amd_agents_allow_access(2, m.gpus.data(), nullptr, data));
  hsa_signal_t first = make_signal(1), second = make_signal(1);
  hsa_barrier_and_packet_t barrier{};
  barrier.header = header(HSA_PACKET_TYPE_BARRIER_AND);
  barrier.dep_signal[0] = first;
  submit(queues[1], &barrier);
  auto on_second = dispatch_packet(m, code[1].kernel("add"), 1024, second, data, 1024u);
  submit(queues[1], &on_second);
  auto on_first = dispatch_packet(m, code[0].kernel("add"), 1024, first, data, 1024u);
  submit(queues[0], &on_first);
  WAIT_ZERO(second);
  CHECK_EQ(data[1023], 2048);
  // Taken away again: the second GPU faults, the first does not.
  OK(hsa_amd_agents_allow_access(1, m.gpus.data(), nullptr, data));
  hsa_signal_store_relaxed(first, 1);
  submit(queues[0], &on_first);
  WAIT_ZERO(first);
  submit(queues[1], &on_second);
  for (int i = 0; g_status == 0 && i < 600; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK_EQ(g_status.load(), HSA_STATUS_ERROR_MEMORY_FAULT);
  CHECK_EQ(data[1023], 3072);
  OK(hsa_shut_down());
  std::puts("two devices ok");
}
