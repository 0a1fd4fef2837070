// A libcuda.so.1 and libcupti in one file, for machines without a GPU: device memory is memory of the
// process, and a "cubin" is a shared object whose entry points run on the host. It keeps to what kerncap
// relies on and was seen on driver 580: addresses are honoured in units of 32 MiB alone, and never where
// something was mapped when the driver started; launches are asynchronous; an error of a kernel stays; CUPTI
// tells of modules, calls and kernels.
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "machine.h"

using namespace fake;  // NOLINT

struct kerncap::abi::CUevent_st {
  std::uint64_t ticket = 0;
  double at_ms = 0;
};

namespace {

constexpr std::uint64_t kWindow = 32u << 20;
constexpr CUresult kOther = CUDA_ERROR_INVALID_VALUE;

CUctx_st the_context;
thread_local CUcontext current = nullptr;
bool started = false;
CUresult sticky = CUDA_SUCCESS;
std::mutex mutex;
std::vector<std::pair<std::uint64_t, std::uint64_t>> mapped_at_start;
std::map<std::uint64_t, std::uint64_t> allocations;
std::uint64_t next_address = 0;

// ---- CUPTI

CUpti_CallbackFunc callback = nullptr;
void* callback_user = nullptr;
std::set<std::pair<int, std::uint32_t>> enabled;
std::uint32_t correlations = 0;
std::atomic<bool> records_wanted{false};
bool recorded = false;  // the device thread's: whether what runs now gets records
CUpti_BuffersCallbackRequestFunc request_buffer = nullptr;
CUpti_BuffersCallbackCompleteFunc complete_buffer = nullptr;
struct Record {
  CUpti_ActivityKernelPrefix kernel;
  std::string name;
};
std::deque<Record> records;
std::size_t records_made = 0;
std::set<std::string> record_names;

bool is_enabled(int domain, std::uint32_t id) {
  const std::lock_guard lock(mutex);
  return callback != nullptr && enabled.count({domain, id}) != 0;
}

}  // namespace

CUresult fake::traced_call(CUpti_driver_api_trace_cbid id, const void* params, const char* symbol,
                           std::uint32_t correlation, const std::function<CUresult()>& body) {
  CUresult result = CUDA_SUCCESS;
  CUpti_CallbackData data{};
  data.functionParams = params;
  data.functionReturnValue = &result;
  data.symbolName = symbol;
  data.context = current != nullptr ? current : &the_context;
  data.correlationId = correlation;
  data.callbackSite = CUPTI_API_ENTER;
  if (is_enabled(CUPTI_CB_DOMAIN_DRIVER_API, id))
    callback(callback_user, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
  result = body();
  data.callbackSite = CUPTI_API_EXIT;
  if (is_enabled(CUPTI_CB_DOMAIN_DRIVER_API, id))
    callback(callback_user, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
  return result;
}

std::uint32_t fake::next_correlation() {
  const std::lock_guard lock(mutex);
  return ++correlations;
}

namespace {

// ---- the device: one thread that does what is submitted, in order

class Device {
 public:
  std::uint64_t submit(std::function<int()> work) {
    const std::lock_guard lock(mutex_);
    if (!running_) std::thread([this] { run(); }).detach(), running_ = true;
    queue_.push_back(std::move(work));
    return ++submitted_;
  }
  [[nodiscard]] std::uint64_t submitted() {
    const std::lock_guard lock(mutex_);
    return submitted_;
  }
  bool done(std::uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    return done_ >= ticket;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_ == submitted_; });
  }

 private:
  void run() {
    for (;;) {
      std::function<int()> work;
      {
        std::unique_lock lock(mutex_);
        if (queue_.empty()) changed_.wait_for(lock, std::chrono::microseconds(200));
        if (queue_.empty()) continue;
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      if (sticky == CUDA_SUCCESS && work() != 0) sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
      const std::lock_guard lock(mutex_);
      ++done_;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<int()>> queue_;
  std::uint64_t submitted_ = 0, done_ = 0;
  bool running_ = false;
};
Device& device() {
  static auto* const made = new Device;
  return *made;
}

std::uint64_t now_ns() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

CUresult settled() {
  device().wait();
  return sticky;
}

bool touches_start(std::uint64_t base, std::uint64_t bytes) {
  for (const auto& [begin, end] : mapped_at_start) {
    if (begin < base + bytes && base < end) return true;
  }
  return false;
}

// Where programs' memory goes differs from process to process, as a real driver's does.
std::uint64_t take_addresses(std::uint64_t bytes) {
  const std::lock_guard lock(mutex);
  if (next_address == 0)
    next_address = 0x600000000000ull + static_cast<std::uint64_t>(::getpid() % 4096) * (8ull << 30);
  const std::uint64_t at = next_address;
  next_address += (bytes + 511) / 512 * 512;
  return at;
}

// Small requests share a chunk of 2 MiB.
CUresult allocate(CUdeviceptr* out, std::size_t bytes) {
  if (bytes == 0) return kOther;
  const std::uint64_t at = take_addresses(bytes);
  const std::uint64_t first = at / 4096 * 4096, end = (at + bytes + 4095) / 4096 * 4096;
  for (std::uint64_t page = first; page < end; page += 4096) {
    ::mmap(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
           0);  // there already: shared with a neighbour
  }
  const std::lock_guard lock(mutex);
  allocations[at] = bytes;
  *out = at;
  return CUDA_SUCCESS;
}

CUresult copy(void* to, const void* from, std::size_t bytes) {
  const CUresult result = settled();
  if (result == CUDA_SUCCESS) std::memcpy(to, from, bytes);
  return result;
}

int lanes(const unsigned*, const unsigned*, void* parameters) {
  std::uint64_t addresses = 0, out = 0;
  std::uint32_t count = 0;
  std::memcpy(&addresses, parameters, 8);
  std::memcpy(&out, static_cast<char*>(parameters) + 8, 8);
  std::memcpy(&count, static_cast<char*>(parameters) + 16, 4);
  constexpr std::uint64_t kP1 = 0x9E3779B185EBCA87ull, kP2 = 0xC2B2AE3D27D4EB4Full;
  const std::uint64_t start[4] = {kP1 + kP2, kP2, 0, 0 - kP1};
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto* words =
        reinterpret_cast<const std::uint64_t*>(reinterpret_cast<const std::uint64_t*>(addresses)[i]);
    for (int lane = 0; lane < 4; ++lane) {
      std::uint64_t acc = start[lane];
      for (std::uint64_t w = lane; w < (1u << 20) / 8; w += 4) {
        acc += words[w] * kP2;
        acc = (acc << 31 | acc >> 33) * kP1;
      }
      reinterpret_cast<std::uint64_t*>(out)[4 * i + lane] = acc;
    }
  }
  return 0;
}
const unsigned kLanesParameters[] = {3, 0, 8, 8, 8, 16, 4};

// With FAKE_LAZY code is loaded when something of it is first asked for, by a call that names no module to
// CUPTI.
void tell(CUmodule module) {
  if (module->untold.empty() || !is_enabled(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED))
    return;
  const std::string image = std::move(module->untold);
  module->untold.clear();
  CUpti_ModuleResourceData told{module->id, image.size(), image.data()};
  CUpti_ResourceData data{};
  data.context = current != nullptr ? current : &the_context;
  data.resourceDescriptor = &told;
  callback(callback_user, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED, &data);
}

CUresult load(CUmodule* module, const void* image) {
  static std::uint32_t ids = 0;
  auto made = std::make_unique<CUmod_st>();
  made->id = ++ids;
  const auto* bytes = static_cast<const char*>(image);
  if (std::memcmp(bytes, ".version", 8) == 0) {  // PTX: kerncap's own hash, and nothing else
    *module = made.release();
    return CUDA_SUCCESS;
  }
  Elf64_Ehdr header;
  std::memcpy(&header, bytes, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return CUDA_ERROR_INVALID_IMAGE;
  const std::size_t size = header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
  const int fd = ::memfd_create("cubin", MFD_CLOEXEC);
  // It says that it is a cubin; to the loader it has to be the host's again.
  std::string host(bytes, size);
  header.e_ident[EI_OSABI] = header.e_ident[EI_ABIVERSION] = 0;
  header.e_machine = EM_X86_64;
  header.e_flags = 0;
  std::memcpy(host.data(), &header, sizeof header);
  if (::write(fd, host.data(), size) != static_cast<ssize_t>(size)) return kOther;
  made->library = ::dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (made->library == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  made->untold.assign(bytes, size);
  if (std::getenv("FAKE_LAZY") == nullptr) tell(made.get());
  *module = made.release();
  return CUDA_SUCCESS;
}

}  // namespace

void fake::submit(std::function<int()> work) {
  device().submit([work = std::move(work), wanted = records_wanted.load()] {
    recorded = wanted;
    return work();
  });
}

std::vector<unsigned char> fake::pack(CUfunction f, void** parameters, void** extra) {
  std::vector<unsigned char> packed;
  if (f->parameters[0] != 0 && parameters != nullptr) {
    for (unsigned i = 0; i < f->parameters[0]; ++i) {
      const unsigned offset = f->parameters[1 + 2 * i], bytes = f->parameters[2 + 2 * i];
      packed.resize(std::max<std::size_t>(packed.size(), offset + bytes));
      std::memcpy(packed.data() + offset, parameters[i], bytes);
    }
  } else if (extra != nullptr) {
    const std::size_t bytes = *static_cast<std::size_t*>(extra[3]);
    packed.assign(static_cast<unsigned char*>(extra[1]), static_cast<unsigned char*>(extra[1]) + bytes);
  }
  return packed;
}

int fake::run_kernel(const KernelRun& run, std::uint32_t correlation, std::uint64_t graph_node) {
  CUpti_ActivityKernelPrefix record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.correlationId = correlation;
  record.registersPerThread = 16;
  record.gridX = static_cast<int>(run.grid[0]), record.gridY = static_cast<int>(run.grid[1]),
  record.gridZ = static_cast<int>(run.grid[2]);
  record.blockX = static_cast<int>(run.block[0]), record.blockY = static_cast<int>(run.block[1]),
  record.blockZ = static_cast<int>(run.block[2]);
  record.dynamicSharedMemory = static_cast<int>(run.shared);
  record.graphNodeId = graph_node;
  std::vector<unsigned char> packed = run.packed;
  record.start = now_ns();
  const int failed = run.function->entry(run.grid, run.block, packed.data());
  record.end = now_ns() + 1;
  const std::lock_guard lock(mutex);
  if (recorded) records.push_back({record, run.function->name}), ++records_made;
  return failed;
}

static CUresult enqueue(CUstream stream, const KernelRun& run, std::uint32_t correlation) {
  if (stream_records(stream)) return record_kernel(stream, run);
  submit([run, correlation] { return run_kernel(run, correlation, 0); });
  return CUDA_SUCCESS;
}

EXPORT CUresult cuInit(unsigned) {
  if (started) return CUDA_SUCCESS;
  started = true;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2) mapped_at_start.emplace_back(begin, end);
  }
  if (const char* path = std::getenv("CUDA_INJECTION64_PATH")) {
    void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* entry = library != nullptr ? ::dlsym(library, "InitializeInjection") : nullptr;
    if (entry == nullptr) {
      std::fprintf(stderr, "fake driver: cannot inject %s: %s\n", path, ::dlerror());
      std::abort();
    }
    reinterpret_cast<int (*)()>(entry)();
  }
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }
EXPORT CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGetErrorString(CUresult, const char** text) {
  return *text = "of the fake driver", CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGet(CUdevice* d, int ordinal) {
  return *d = ordinal, ordinal == 0 ? CUDA_SUCCESS : kOther;
}
EXPORT CUresult cuDeviceGetCount(int* count) { return *count = 1, CUDA_SUCCESS; }
EXPORT CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "Fake GPU");
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute what, CUdevice) {
  *value = what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
           : what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
           : what == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE            ? 1 << 20
                                                                  : 1024;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  static std::atomic<bool> told{false};
  if (!told.exchange(true) && is_enabled(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED)) {
    CUpti_ResourceData data{};
    data.context = &the_context;
    callback(callback_user, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, &data);
  }
  return *context = &the_context, CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSetCurrent(CUcontext context) { return current = context, CUDA_SUCCESS; }
EXPORT CUresult cuCtxGetCurrent(CUcontext* context) { return *context = current, CUDA_SUCCESS; }
EXPORT CUresult cuCtxGetDevice(CUdevice* d) { return *d = 0, CUDA_SUCCESS; }
EXPORT CUresult cuCtxSynchronize() { return settled(); }
EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned) {
  return *stream = std::make_unique<CUstream_st>().release(), CUDA_SUCCESS;
}
EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  const std::unique_ptr<CUstream_st> gone(stream);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamQuery(CUstream) {
  return !device().done(device().submitted()) ? CUDA_ERROR_NOT_READY : sticky;
}
EXPORT CUresult cuStreamSynchronize(CUstream) { return settled(); }
EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*) { return CUDA_SUCCESS; }
EXPORT CUresult cuEventCreate(CUevent* event, unsigned) { return *event = new CUevent_st, CUDA_SUCCESS; }
EXPORT CUresult cuEventRecord(CUevent event, CUstream) {
  event->ticket = device().submit([event] {
    event->at_ms = static_cast<double>(now_ns()) / 1e6;
    return 0;
  });
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventQuery(CUevent event) {
  return !device().done(event->ticket) ? CUDA_ERROR_NOT_READY : sticky;
}
EXPORT CUresult cuEventSynchronize(CUevent) { return settled(); }
EXPORT CUresult cuEventElapsedTime(float* ms, CUevent a, CUevent b) {
  return *ms = static_cast<float>(b->at_ms - a->at_ms), CUDA_SUCCESS;
}
EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  const cuModuleLoadData_params params{module};
  return traced(CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData, params, nullptr, next_correlation(),
                [&] { return load(module, image); });
}
EXPORT CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}
EXPORT CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }
EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  tell(module);
  auto made = std::make_unique<CUfunc_st>();
  made->module = module;
  made->name = name;
  if (module->library == nullptr) {
    if (made->name != "kerncap_xxh64_lanes") return CUDA_ERROR_NOT_FOUND;
    made->entry = lanes;
    made->parameters = kLanesParameters;
  } else {
    void* entry = ::dlsym(module->library, name);
    void* parameters = ::dlsym(module->library, (made->name + "_parameters").c_str());
    if (entry == nullptr || parameters == nullptr) return CUDA_ERROR_NOT_FOUND;
    made->entry = reinterpret_cast<decltype(made->entry)>(entry);
    made->parameters = reinterpret_cast<const unsigned* (*)()>(parameters)();
  }
  *function = made.release();
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule module,
                                     const char* name) {
  tell(module);
  void* found = module->library != nullptr ? ::dlsym(module->library, name) : nullptr;
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  Dl_info info{};
  const Elf64_Sym* symbol = nullptr;
  if (::dladdr1(found, &info, reinterpret_cast<void**>(const_cast<Elf64_Sym**>(&symbol)), RTLD_DL_SYMENT) ==
          0 ||
      symbol == nullptr || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT) {
    return CUDA_ERROR_NOT_FOUND;
  }
  *address = reinterpret_cast<CUdeviceptr>(found);
  *bytes = symbol->st_size;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetAttribute(int* value, CUfunction_attribute what, CUfunction) {
  return *value = what == CU_FUNC_ATTRIBUTE_NUM_REGS ? 16 : 0, CUDA_SUCCESS;
}
EXPORT CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
EXPORT CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return *module = function->module, CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetParamInfo(CUfunction f, std::size_t i, std::size_t* offset, std::size_t* bytes) {
  if (i >= f->parameters[0]) return kOther;
  *offset = f->parameters[1 + 2 * i];
  *bytes = f->parameters[2 + 2 * i];
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  const cuMemAlloc_v2_params params{address, bytes};
  return traced(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, params, nullptr, next_correlation(),
                [&] { return allocate(address, bytes); });
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  const cuMemFree_v2_params params{address};
  return traced(CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, params, nullptr, next_correlation(), [&] {
    const CUresult result = settled();
    const std::lock_guard lock(mutex);
    return allocations.erase(address) == 1 ? result : kOther;
  });
}
EXPORT CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  const cuMemHostAlloc_params params{address, bytes};
  return traced(CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc, params, nullptr, next_correlation(), [&] {
    *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return *address != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  });
}
EXPORT CUresult cuMemFreeHost(void* address) {
  const cuMemFree_v2_params params{reinterpret_cast<CUdeviceptr>(address)};
  return traced(CUPTI_DRIVER_TRACE_CBID_cuMemFreeHost, params, nullptr, next_correlation(),
                [&] { return std::free(address), CUDA_SUCCESS; });
}
EXPORT CUresult cuMemHostRegister_v2(void*, std::size_t, unsigned) { return CUDA_SUCCESS; }
EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* host, unsigned) {
  return *address = reinterpret_cast<CUdeviceptr>(host), CUDA_SUCCESS;
}
EXPORT CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr wanted,
                                    unsigned long long) {
  void* at = nullptr;
  if (wanted % kWindow == 0 && bytes >= kWindow && wanted != 0 && !touches_start(wanted, bytes)) {
    at = ::mmap(reinterpret_cast<void*>(wanted), bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED) at = nullptr;
  }
  if (at == nullptr)
    at = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *address = reinterpret_cast<CUdeviceptr>(at);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  return ::munmap(reinterpret_cast<void*>(address), bytes) == 0 ? CUDA_SUCCESS : kOther;
}
EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                            const CUmemAllocationProp*, unsigned long long) {
  if (bytes % (2u << 20) != 0) return kOther;
  const int fd = ::memfd_create("device", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = static_cast<CUmemGenericAllocationHandle>(fd);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                         CUmemGenericAllocationHandle handle, unsigned long long) {
  const cuMemMap_params params{address, bytes, offset, handle};
  return traced(CUPTI_DRIVER_TRACE_CBID_cuMemMap, params, nullptr, next_correlation(), [&] {
    if (address % (2u << 20) != 0) return kOther;
    void* at = ::mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                      static_cast<int>(handle), static_cast<off_t>(offset));
    return at == MAP_FAILED ? kOther : CUDA_SUCCESS;
  });
}
EXPORT CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t) {
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return *free = *total = std::size_t{8} << 30, CUDA_SUCCESS;
}
EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  const std::lock_guard lock(mutex);
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin() || std::prev(after)->first + std::prev(after)->second <= address)
    return kOther;
  *base = std::prev(after)->first;
  *bytes = std::prev(after)->second;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuPointerGetAttribute(void*, CUpointer_attribute, CUdeviceptr) { return kOther; }
EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t n) {
  return copy(reinterpret_cast<void*>(to), from, n);
}
EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t n) {
  return copy(to, reinterpret_cast<const void*>(from), n);
}
EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t n, CUstream) {
  return copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), n);
}
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t n, CUstream) {
  return cuMemcpyHtoD_v2(to, from, n);
}
EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t n, CUstream) {
  return cuMemcpyDtoH_v2(to, from, n);
}
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t n, CUstream s) {
  return cuMemcpyAsync(to, from, n, s);
}
EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t n, CUstream) {
  const CUresult result = settled();
  if (result == CUDA_SUCCESS) std::memset(reinterpret_cast<void*>(to), value, n);
  return result;
}
// What the driver looks at first, to learn whether a tool follows its calls.
extern "C" __attribute__((visibility("hidden"), used)) int fake_traced_flag;
int fake_traced_flag = 0;

namespace {
// Blocks of a launch that comes to nothing at once, to time what is around it.
constexpr unsigned kNoLaunch = 7777;

template <typename Params>
CUresult launch(CUpti_driver_api_trace_cbid id, const Params& params, CUstream stream, KernelRun run) {
  const std::uint32_t correlation = next_correlation();
  return traced(id, params, run.function->name.c_str(), correlation, [&] {
    if (run.grid[0] == 0) return kOther;
    return enqueue(stream, run, correlation);
  });
}
CUresult launch_plain(CUpti_driver_api_trace_cbid id, const cuLaunchKernel_params& p) {
  return launch(id, p, p.hStream,
                {p.f,
                 {p.gridDimX, p.gridDimY, p.gridDimZ},
                 {p.blockDimX, p.blockDimY, p.blockDimZ},
                 p.sharedMemBytes,
                 pack(p.f, p.kernelParams, p.extra)});
}
// A line a launch, where a file is named: its grid and block along x, dynamic shared memory, cluster along x.
void write_down(const CUlaunchConfig& c) {
  const char* path = std::getenv("FAKE_CUDA_LAUNCHES");
  if (path == nullptr) return;
  unsigned cluster = 0;
  for (unsigned i = 0; i < c.numAttrs; ++i) {
    if (c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) cluster = c.attrs[i].value.clusterDim.x;
  }
  std::ofstream(path, std::ios::app) << c.gridDimX << ' ' << c.blockDimX << ' ' << c.sharedMemBytes << ' '
                                     << cluster << '\n';
}
CUresult launch_ex(CUpti_driver_api_trace_cbid id, const cuLaunchKernelEx_params& p) {
  const CUlaunchConfig& c = *p.config;
  write_down(c);
  return launch(id, p, c.hStream,
                {p.f,
                 {c.gridDimX, c.gridDimY, c.gridDimZ},
                 {c.blockDimX, c.blockDimY, c.blockDimZ},
                 c.sharedMemBytes,
                 pack(p.f, p.kernelParams, p.extra)});
}
}  // namespace

LAUNCHER(cuLaunchKernel)
(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
 CUstream stream, void** parameters, void** extra) {
  if (gx == kNoLaunch) return CUDA_SUCCESS;
  return launch_plain(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                      {f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra});
}
LAUNCHER(cuLaunchKernel_ptsz)
(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
 CUstream stream, void** parameters, void** extra) {
  return launch_plain(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                      {f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra});
}
LAUNCHER(cuLaunchCooperativeKernel)
(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
 CUstream stream, void** parameters) {
  return launch_plain(CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                      {f, gx, gy, gz, bx, by, bz, shared, stream, parameters, nullptr});
}
LAUNCHER(cuLaunchCooperativeKernel_ptsz)
(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
 CUstream stream, void** parameters) {
  return launch_plain(CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
                      {f, gx, gy, gz, bx, by, bz, shared, stream, parameters, nullptr});
}
LAUNCHER(cuLaunchKernelEx)(const CUlaunchConfig* c, CUfunction f, void** parameters, void** extra) {
  return launch_ex(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, {c, f, parameters, extra});
}
LAUNCHER(cuLaunchKernelEx_ptsz)(const CUlaunchConfig* c, CUfunction f, void** parameters, void** extra) {
  return launch_ex(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz, {c, f, parameters, extra});
}

// As it was before CUDA 4: block and parameters are the function's.
EXPORT CUresult cuLaunchGrid(CUfunction f, int width, int height) {
  const int params[4] = {};
  return launch(CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid, params, nullptr,
                {f, {static_cast<unsigned>(width), static_cast<unsigned>(height), 1}, {32, 1, 1}, 0, {}});
}

EXPORT std::size_t fake_records_made() {
  const std::lock_guard lock(mutex);
  return records_made;
}

EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc function,
                                  void* user) {
  callback = function;
  callback_user = user;
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&callback);
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle,
                                       CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  const std::lock_guard lock(mutex);
  if (enable != 0) {
    enabled.insert({domain, id});
  } else {
    enabled.erase({domain, id});
  }
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind) { return records_wanted = true, CUPTI_SUCCESS; }
EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind) { return records_wanted = false, CUPTI_SUCCESS; }
EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                  CUpti_BuffersCallbackCompleteFunc complete) {
  request_buffer = request;
  complete_buffer = complete;
  return CUPTI_SUCCESS;
}
constexpr std::size_t kRecordBytes = 224;
EXPORT CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  for (;;) {
    std::uint8_t* buffer = nullptr;
    std::size_t bytes = 0, most = 0, used = 0;
    {
      const std::lock_guard lock(mutex);
      if (records.empty()) return CUPTI_SUCCESS;
    }
    request_buffer(&buffer, &bytes, &most);
    if (buffer == nullptr) return CUPTI_SUCCESS;
    {
      const std::lock_guard lock(mutex);
      while (!records.empty() && used + kRecordBytes <= bytes) {
        Record& record = records.front();
        record.kernel.name = record_names.insert(record.name).first->c_str();
        std::memset(buffer + used, 0, kRecordBytes);
        std::memcpy(buffer + used, &record.kernel, sizeof record.kernel);
        used += kRecordBytes;
        records.pop_front();
      }
    }
    complete_buffer(&the_context, 0, buffer, bytes, used);
  }
}
EXPORT CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                              CUpti_Activity** record) {
  std::uint8_t* next = *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + kRecordBytes;
  if (next + kRecordBytes > buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  return *dropped = 0, CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  return *text = "of the fake CUPTI", CUPTI_SUCCESS;
}
