// hsa_init and hsa_shut_down count; after the last one nothing works until hsa_init. Makes one queue a round.
#include "hsa_program.h"

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  hsa_agent_t agent{};
  for (int i = 0; i < rounds; ++i) {
    FAILS(HSA_STATUS_ERROR_NOT_INITIALIZED, hsa_shut_down());
    FAILS(HSA_STATUS_ERROR_NOT_INITIALIZED, hsa_agent_get_info(agent, HSA_AGENT_INFO_NAME, &agent));
    Machine m = open_machine();
    OK(hsa_init());
    OK(hsa_shut_down());
    hsa_queue_t* queue = make_queue(m.gpu);
    hsa_barrier_and_packet_t barrier{};
    barrier.header = header(HSA_PACKET_TYPE_BARRIER_AND);
    barrier.completion_signal = make_signal(1);
    submit(queue, &barrier);
    WAIT_ZERO(barrier.completion_signal);
    char name[64];
    OK(hsa_agent_get_info(m.gpu, HSA_AGENT_INFO_NAME, name));
    CHECK(std::string(name) == "gfx942");
    const char* text = nullptr;
    OK(hsa_status_string(HSA_STATUS_ERROR_MEMORY_FAULT, &text));
    CHECK(std::string(text) == "HSA_STATUS_ERROR_MEMORY_FAULT");
    OK(hsa_shut_down());  // with the queue still there
  }
  FAILS(HSA_STATUS_ERROR_NOT_INITIALIZED, hsa_iterate_agents(nullptr, nullptr));
  std::puts("lifetime ok");
}
