// One section of the HIP API a run: hip_api SECTION.
#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "program.h"

namespace {

hipModule_t module;

void device() {
  int count = 0, value = -1;
  CHECK(hipGetDeviceCount(&count));
  EXPECT(count >= 1);
  CHECK(hipSetDevice(0));
  CHECK(hipGetDevice(&value));
  EXPECT(value == 0);
  EXPECT(hipSetDevice(count) == hipErrorInvalidDevice);
  EXPECT(hipGetLastError() == hipErrorInvalidDevice);
  EXPECT(hipGetLastError() == hipSuccess);
  hipDeviceProp_t properties;
  CHECK(hipGetDeviceProperties(&properties, 0));
  EXPECT(std::strncmp(properties.gcnArchName, "gfx942", 6) == 0);
  EXPECT(properties.warpSize == 64 && properties.multiProcessorCount > 0);
  EXPECT(properties.major == 9 && properties.minor == 4);
  EXPECT(properties.totalGlobalMem > 0 && properties.name[0] != '\0');
  CHECK(hipDeviceGetAttribute(&value, hipDeviceAttributeMultiprocessorCount, 0));
  EXPECT(value == properties.multiProcessorCount);
  char name[64];
  CHECK(hipDeviceGetName(name, sizeof(name), 0));
  EXPECT(std::string(name) == properties.name);
  std::size_t available = 0, total = 0;
  CHECK(hipMemGetInfo(&available, &total));
  EXPECT(total == properties.totalGlobalMem && available <= total);
  CHECK(hipRuntimeGetVersion(&value));
  EXPECT(value > 60000000);
}

void errors() {
  EXPECT(std::string(hipGetErrorName(hipErrorOutOfMemory)) == "hipErrorOutOfMemory");
  EXPECT(std::string(hipGetErrorString(hipErrorInvalidValue)) == "invalid argument");
  EXPECT(std::string(hipGetErrorString(static_cast<hipError_t>(12345))) == "unknown error");
  void* memory = nullptr;
  EXPECT(hipMalloc(&memory, std::size_t{1} << 60) == hipErrorOutOfMemory);
  EXPECT(memory == nullptr);
  int local = 0;
  EXPECT(hipFree(&local) == hipErrorInvalidValue);
  CHECK(hipFree(nullptr));
  int* x = device_copy(std::vector<int>(4, 0));
  EXPECT(hipMemcpy(x, &local, 17, hipMemcpyHostToDevice) == hipErrorInvalidValue);
  EXPECT(hipMemcpy(&local, &local + 1, 4, hipMemcpyDeviceToHost) == hipErrorInvalidValue);
  CHECK(hipFree(x));
  EXPECT(hipFree(x) == hipErrorInvalidValue);
  hipModule_t missing = nullptr;
  EXPECT(hipModuleLoad(&missing, "/nonexistent.hsaco") == hipErrorFileNotFound);
  EXPECT(hipModuleLoad(&missing, "/etc/passwd") != hipSuccess);
  hipFunction_t function = nullptr;
  EXPECT(hipModuleGetFunction(&function, module, "no_such_kernel") == hipErrorNotFound);
  hipFunction_t geometry = find(module, "geometry");
  void* arguments[] = {&x};
  EXPECT(hipModuleLaunchKernel(geometry, 1, 1, 1, 2048, 1, 1, 0, nullptr, arguments, nullptr) ==
         hipErrorInvalidConfiguration);
  EXPECT(hipModuleLaunchKernel(geometry, 0, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr) ==
         hipErrorInvalidConfiguration);
  EXPECT(hipModuleLaunchKernel(geometry, 1, 1, 1, 64, 1, 1, 1 << 20, nullptr, arguments, nullptr) ==
         hipErrorInvalidConfiguration);
  EXPECT(hipStreamSynchronize(reinterpret_cast<hipStream_t>(&local)) == hipErrorInvalidHandle);
}

void copies() {
  const int n = 5000;
  std::vector<int> values(n);
  for (int i = 0; i < n; ++i) values[i] = i * i;
  int* a = device_copy(values);
  int* b = device_copy(std::vector<int>(n, -1));
  CHECK(hipMemcpy(b, a, n * sizeof(int), hipMemcpyDeviceToDevice));
  EXPECT(host_copy(b, n) == values);
  CHECK(hipMemcpyDtoD(b + 10, a, 40));
  EXPECT(host_copy(b, n)[19] == 81 && host_copy(b, n)[20] == 400);

  // 2D: 7 rows of 12 bytes, from a pitch of 20 to one of 16.
  std::vector<unsigned char> from(7 * 20), to(7 * 16, 0xee);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i);
  unsigned char* d = device_copy(std::vector<unsigned char>(7 * 16, 0));
  CHECK(hipMemcpy2D(d, 16, from.data(), 20, 12, 7, hipMemcpyHostToDevice));
  CHECK(hipMemcpy2D(to.data(), 16, d, 16, 12, 7, hipMemcpyDeviceToHost));
  for (int row = 0; row < 7; ++row) {
    EXPECT(to[row * 16 + 11] == row * 20 + 11);
    EXPECT(to[row * 16 + 12] == 0xee);
  }
  EXPECT(hipMemcpy2D(d, 8, from.data(), 20, 12, 7, hipMemcpyHostToDevice) == hipErrorInvalidPitchValue);

  unsigned char* m = device_copy(std::vector<unsigned char>(64, 0x11));
  CHECK(hipMemset(m + 3, 0xab, 10));
  std::vector<unsigned char> bytes = host_copy(m, 64);
  for (int i = 0; i < 64; ++i) EXPECT(bytes[i] == (i >= 3 && i < 13 ? 0xab : 0x11));
  CHECK(hipMemsetD16(m + 2, 0x1234, 7));
  bytes = host_copy(m, 64);
  for (int i = 2; i < 16; ++i) EXPECT(bytes[i] == (i % 2 == 0 ? 0x34 : 0x12));
  EXPECT(bytes[1] == 0x11 && bytes[16] == 0x11);
  CHECK(hipMemsetD32(m + 32, 0x01020304, 4));
  bytes = host_copy(m, 64);
  EXPECT(bytes[32] == 4 && bytes[47] == 1 && bytes[48] == 0x11);
  CHECK(hipMemsetAsync(m, 0, 64));
  EXPECT(host_copy(m, 64) == std::vector<unsigned char>(64, 0));
}

void arguments() {
  struct Mixed {
    char c;
    double d;
    short s;
  };
  double* out = device_copy(std::vector<double>(9, 0.0));
  const double expected[] = {-3, -300, 70000, -5000000000.0, 1.5, 7, 2.25, -9, 200};
  hipFunction_t kernel = find(module, "arguments");
  launch(kernel, 1, 1, out, static_cast<char>(-3), static_cast<short>(-300), 70000, -5000000000L, 1.5f,
         Mixed{7, 2.25, -9}, static_cast<unsigned char>(200));
  for (int i = 0; i < 9; ++i) EXPECT(host_copy(out, 9)[i] == expected[i]);

  CHECK(hipMemset(out, 0, 9 * sizeof(double)));
  // The other form: one block of bytes, laid out as the kernel's parameters are.
  struct Block {
    double* out;
    char a;
    short b;
    int c;
    long d;
    float e;
    Mixed m;
    unsigned char f;
  } block{out, -3, -300, 70000, -5000000000L, 1.5f, {7, 2.25, -9}, 200};
  std::size_t bytes = sizeof(block);
  void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &block, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END};
  CHECK(hipModuleLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  for (int i = 0; i < 9; ++i) EXPECT(host_copy(out, 9)[i] == expected[i]);

  unsigned* sizes = device_copy(std::vector<unsigned>(6, 0u));
  void* pointers[] = {&sizes};
  CHECK(hipModuleLaunchKernel(find(module, "geometry"), 5, 3, 2, 8, 4, 2, 0, nullptr, pointers, nullptr));
  EXPECT((host_copy(sizes, 6) == std::vector<unsigned>{5, 3, 2, 8, 4, 2}));

  const int words = 5000;
  int* lds = device_copy(std::vector<int>(words, 0));
  void* lds_pointers[] = {&lds, const_cast<int*>(&words)};
  CHECK(hipModuleLaunchKernel(find(module, "fill_by_lds"), 1, 1, 1, 256, 1, 1, words * 4, nullptr, lds_pointers, nullptr));
  EXPECT(host_copy(lds, words)[0] == (words - 1) * 3 && host_copy(lds, words)[words - 1] == 0);
}

void variables() {
  hipDeviceptr_t table = nullptr, bias = nullptr;
  std::size_t bytes = 0;
  CHECK(hipModuleGetGlobal(&table, &bytes, module, "table"));
  EXPECT(bytes == 400);
  CHECK(hipModuleGetGlobal(&bias, &bytes, module, "bias"));
  EXPECT(bytes == 8);
  EXPECT(hipModuleGetGlobal(&bias, &bytes, module, "geometry") == hipErrorNotFound);
  std::vector<int> values(100);
  for (int i = 0; i < 100; ++i) values[i] = i;
  CHECK(hipMemcpyHtoD(table, values.data(), 400));
  long* out = device_copy(std::vector<long>(100, 0));
  launch(find(module, "read_table"), 1, 100, out);
  EXPECT(host_copy(out, 100)[99] == 106);
  hipPointerAttribute_t attributes;
  CHECK(hipPointerGetAttributes(&attributes, table));
  EXPECT(attributes.type == hipMemoryTypeDevice);
}

void pointers() {
  hipPointerAttribute_t attributes;
  int* device = device_copy(std::vector<int>(100, 0));
  CHECK(hipPointerGetAttributes(&attributes, device + 50));
  EXPECT(attributes.type == hipMemoryTypeDevice && attributes.devicePointer == device + 50 && attributes.device == 0);
  int* host = nullptr;
  CHECK(hipHostMalloc(&host, 400));
  CHECK(hipPointerGetAttributes(&attributes, host));
  EXPECT(attributes.type == hipMemoryTypeHost && attributes.hostPointer == host);
  int* managed = nullptr;
  CHECK(hipMallocManaged(&managed, 400));
  CHECK(hipPointerGetAttributes(&attributes, managed));
  EXPECT(attributes.type == hipMemoryTypeManaged && attributes.isManaged == 1);
  int local = 0;
  CHECK(hipPointerGetAttributes(&attributes, &local));
  EXPECT(attributes.type == hipMemoryTypeUnregistered);
  hipDeviceptr_t base = nullptr;
  std::size_t bytes = 0;
  CHECK(hipMemGetAddressRange(&base, &bytes, device + 50));
  EXPECT(base == device && bytes == 400);
  CHECK(hipHostFree(host));
  CHECK(hipFree(managed));
  std::vector<int> pageable(4096);
  CHECK(hipHostRegister(pageable.data(), 4096 * 4, 0));
  EXPECT(hipHostRegister(pageable.data(), 4096 * 4, 0) == hipErrorHostMemoryAlreadyRegistered);
  CHECK(hipHostUnregister(pageable.data()));
  EXPECT(hipHostUnregister(pageable.data()) == hipErrorHostMemoryNotRegistered);
}

// Work in a stream runs in order: kernels, copies, fills and host functions, without the host waiting in between.
void order() {
  hipStream_t stream = nullptr;
  CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  int* x = device_copy(std::vector<int>(64, 0));
  int* y = device_copy(std::vector<int>(64, 0));
  int* pinned = nullptr;
  CHECK(hipHostMalloc(&pinned, 256));
  hipFunction_t add_to = find(module, "add_to");
  std::atomic<int> seen{0};
  for (int round = 1; round <= 20; ++round) {
    launch_on(stream, add_to, 1, 64, x, 1, 2000);
    CHECK(hipMemcpyAsync(y, x, 256, hipMemcpyDeviceToDevice, stream));
    CHECK(hipMemcpyAsync(pinned, y, 256, hipMemcpyDeviceToHost, stream));
    CHECK(hipLaunchHostFunc(
        stream, [](void* data) { ++*static_cast<std::atomic<int>*>(data); }, &seen));
    launch_on(stream, add_to, 1, 64, y, 1000, 2000);
    CHECK(hipMemsetD32Async(y + 32, 5, 32, stream));
    if (round % 7 == 0) {
      CHECK(hipStreamSynchronize(stream));
      EXPECT(pinned[63] == round && seen == round);
      EXPECT(host_copy(y, 64)[0] == round + 1000 && host_copy(y, 64)[63] == 5);
    }
  }
  CHECK(hipStreamSynchronize(stream));
  EXPECT(hipStreamQuery(stream) == hipSuccess);
  EXPECT(pinned[0] == 20 && seen == 20);
  CHECK(hipStreamDestroy(stream));
}

// A stream waits for another's event; the null stream and blocking streams wait for each other.
void dependencies() {
  const int rounds = 20000;
  hipFunction_t add_to = find(module, "add_to"), copy_int = find(module, "copy_int");
  std::vector<hipStream_t> streams(8);
  for (hipStream_t& stream : streams) CHECK(hipStreamCreate(&stream));
  int* x = device_copy(std::vector<int>(64, 1));
  int* y = device_copy(std::vector<int>(64, 0));
  hipEvent_t event = nullptr;
  CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
  for (int i = 0; i < 24; ++i) {
    launch_on(streams[i % 8], add_to, 1, 64, x, 1, rounds);
    CHECK(hipEventRecord(event, streams[i % 8]));
    CHECK(hipStreamWaitEvent(streams[(i + 1) % 8], event, 0));
  }
  launch_on(streams[0], copy_int, 1, 64, static_cast<const int*>(x), y);
  CHECK(hipStreamSynchronize(streams[0]));
  EXPECT(host_copy(y, 64)[63] == 25);

  for (int i = 0; i < 10; ++i) {
    launch_on(streams[i % 8], add_to, 1, 64, x, 1, rounds);
    launch(copy_int, 1, 64, static_cast<const int*>(x), y);  // the null stream
    launch_on(streams[(i + 3) % 8], add_to, 1, 64, y, 100, rounds);
    EXPECT(host_copy(y, 64)[0] == 25 + i + 1 + 100);
  }
  CHECK(hipEventDestroy(event));
  for (hipStream_t stream : streams) CHECK(hipStreamDestroy(stream));
}

void events() {
  hipEvent_t start = nullptr, stop = nullptr;
  CHECK(hipEventCreate(&start));
  CHECK(hipEventCreate(&stop));
  EXPECT(hipEventQuery(start) == hipSuccess);
  float ms = -1.0f, longer = -1.0f;
  EXPECT(hipEventElapsedTime(&ms, start, stop) == hipErrorInvalidHandle);
  int* x = device_copy(std::vector<int>(64, 0));
  hipFunction_t add_to = find(module, "add_to");
  launch(add_to, 1, 64, x, 1, 1);  // what only a first launch costs the host does not belong into the times
  CHECK(hipDeviceSynchronize());
  CHECK(hipEventRecord(start));
  launch(add_to, 1, 64, x, 1, 1000);
  CHECK(hipEventRecord(stop));
  CHECK(hipEventSynchronize(stop));
  CHECK(hipEventElapsedTime(&ms, start, stop));
  EXPECT(ms > 0.0f);
  CHECK(hipEventRecord(start));
  launch(add_to, 1, 64, x, 1, 500000);
  CHECK(hipEventRecord(stop));
  CHECK(hipEventSynchronize(stop));
  CHECK(hipEventElapsedTime(&longer, start, stop));
  EXPECT(longer > 5 * ms);
  CHECK(hipEventDestroy(start));
  CHECK(hipEventDestroy(stop));
}

// More launches than fit the queue and the memory for arguments, from several threads.
void many() {
  hipFunction_t add_to = find(module, "add_to");
  std::vector<std::thread> threads;
  std::vector<int*> counters;
  for (int t = 0; t < 4; ++t) counters.push_back(device_copy(std::vector<int>(64, 0)));
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      hipStream_t stream = nullptr;
      CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
      for (int i = 0; i < 3000; ++i) launch_on(stream, add_to, 1, 64, counters[t], 1, 0);
      CHECK(hipStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int* counter : counters) EXPECT(host_copy(counter, 64)[63] == 3000);
}

// A code object in memory, and in an offload bundle among entries for other targets.
void modules() {
  std::ifstream file(program_folder() + "/hip_api.hsaco", std::ios::binary);
  const std::string code{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto use = [](hipModule_t loaded) {
    unsigned* sizes = device_copy(std::vector<unsigned>(6, 0u));
    launch(find(loaded, "geometry"), 2, 64, sizes);
    EXPECT(host_copy(sizes, 6)[3] == 64);
    CHECK(hipModuleUnload(loaded));
  };
  hipModule_t loaded = nullptr;
  CHECK(hipModuleLoadData(&loaded, code.data()));
  use(loaded);
  const auto bundle = [&code](const std::string& arch) {
    const std::vector<std::pair<std::string, std::string>> entries = {
        {"host-x86_64-unknown-linux-gnu-", ""},
        {"hipv4-amdgcn-amd-amdhsa--gfx90a", "not an object"},
        {"hipv4-amdgcn-amd-amdhsa--" + arch + ":sramecc+:xnack-", code}};
    const auto put = [](std::string& to, std::uint64_t v) { to.append(reinterpret_cast<const char*>(&v), 8); };
    std::size_t header = 24 + 8;
    for (const auto& [id, text] : entries) header += 24 + id.size();
    std::string head = "__CLANG_OFFLOAD_BUNDLE__", body;
    put(head, entries.size());
    for (const auto& [id, text] : entries) {
      body.resize((header + body.size() + 4095) / 4096 * 4096 - header);
      put(head, header + body.size());
      put(head, text.size());
      put(head, id.size());
      head += id;
      body += text;
    }
    return head + body;
  };
  CHECK(hipModuleLoadData(&loaded, bundle("gfx942").data()));
  use(loaded);
  EXPECT(hipModuleLoadData(&loaded, bundle("gfx1100").data()) == hipErrorNoBinaryForGpu);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> sections = {
      {"device", device},       {"errors", errors},     {"copies", copies}, {"arguments", arguments},
      {"variables", variables}, {"pointers", pointers}, {"order", order},   {"dependencies", dependencies},
      {"events", events},       {"many", many},         {"modules", modules}};
  const auto section = sections.find(argc > 1 ? argv[1] : "");
  if (section == sections.end()) {
    for (const auto& [name, run] : sections) std::printf("%s\n", name.c_str());
    return argc > 1 ? 2 : 0;
  }
  module = load("hip_api");
  section->second();
  std::printf("%s: ok\n", section->first.c_str());
}
