// C13: --streams (3) streams that are busy while `target` runs in another, --launches (10) times. With
// --endless one of the busy kernels only ends after `target` did.
#include "program.h"

int main(int argc, char** argv) {
  const int n = 256;
  const long busy = option(argc, argv, "--streams", 3), launches = option(argc, argv, "--launches", 10);
  const long rounds = option(argc, argv, "--rounds", 20000);
  hipModule_t module = load("streams");
  hipFunction_t spin = find(module, "spin"), target = find(module, "target");
  void* host = nullptr;
  CHECK(hipHostMalloc(&host, sizeof(int), 0));
  volatile int* stop = static_cast<volatile int*>(host);
  *stop = 0;
  std::vector<hipStream_t> streams(busy + 1);
  std::vector<unsigned*> states;
  for (hipStream_t& stream : streams) CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  int* out = device_copy(std::vector<int>(n, 0));
  for (long s = 0; s < busy; ++s) states.push_back(device_copy(std::vector<unsigned>(64, 1u)));
  const bool endless = flag(argc, argv, "--endless");
  for (long l = 0; l < launches; ++l) {
    for (long s = 0; s < busy; ++s) {
      launch_on(streams[s], spin, 1, 64, states[s], endless && s == 0 && l == 0 ? -1L : rounds,
                const_cast<int*>(static_cast<volatile int*>(stop)));
    }
    launch_on(streams[busy], target, 4, 64, out, static_cast<int>(l), n);
  }
  CHECK(hipStreamSynchronize(streams[busy]));
  *stop = 1;
  CHECK(hipDeviceSynchronize());
  unsigned expected = 1;
  if (!endless) {
    for (long i = 0; i < rounds * launches; ++i) expected = expected * 1664525u + 1013904223u;
    for (unsigned* state : states) EXPECT(host_copy(state, 64)[63] == expected);
  }
  EXPECT(host_copy(out, n)[n - 1] == launches - 1 + n - 1);
  for (hipStream_t stream : streams) CHECK(hipStreamDestroy(stream));
  std::printf("streams: %ld busy, %ld launches\n", busy, launches);
}
