#include "interpose/cuda/kernels.h"

#include <algorithm>
#include <array>

#include "interpose/cuda/driver.h"

namespace kerncap::interpose::cuda {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

// Code that was loaded by driver calls of this thread and that no module has claimed yet.
thread_local std::vector<Code*> fresh;

int attribute(CUfunction function, CUfunction_attribute what) {
  int value = 0;
  return driver().cuFuncGetAttribute(&value, what, function) == CUDA_SUCCESS ? value : 0;
}

// The runtime hands out CUkernel handles, which are of no context and which cuFunc* functions refuse.
CUfunction as_function(CUfunction handle, CUmodule* module) {
  if (driver().cuFuncGetModule(module, handle) == CUDA_SUCCESS) return handle;
  CUfunction function = nullptr;
  if (driver().cuKernelGetFunction == nullptr ||
      driver().cuKernelGetFunction(&function, reinterpret_cast<CUkernel>(handle)) != CUDA_SUCCESS) {
    return nullptr;
  }
  if (driver().cuFuncGetModule(module, function) != CUDA_SUCCESS) *module = nullptr;
  return function;
}

struct FunctionFacts {
  int registers = 0, static_shared = 0, local_bytes = 0;
  bool parameters_known = false;
  std::vector<snapshot::CudaParameter> parameters;
};

// Not under a lock: the driver may load the function for it, and tell of that.
FunctionFacts examine(CUfunction function) {
  FunctionFacts facts;
  if (function == nullptr) return facts;
  facts.registers = attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS);
  facts.static_shared = attribute(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  facts.local_bytes = attribute(function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  facts.parameters_known = driver().cuFuncGetParamInfo != nullptr;
  std::size_t offset = 0, bytes = 0;
  for (std::size_t i = 0;
       facts.parameters_known && driver().cuFuncGetParamInfo(function, i, &offset, &bytes) == CUDA_SUCCESS;
       ++i) {
    facts.parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)});
  }
  return facts;
}

live::KernelKind kind_of(const std::string& symbol, const Code* code) {
  const live::KernelKind kind = kernel_kind(symbol, true);
  if (kind != live::KernelKind::hip) return kind;
  const bool triton = symbol.starts_with("triton_") || (code != nullptr && made_by_triton(code->hash));
  return triton ? live::KernelKind::triton : live::KernelKind::cuda;
}

}  // namespace

void Kernels::begin_loading() { fresh.clear(); }

void Kernels::end_loading(CUmodule module) {
  if (module != nullptr) {
    const std::unique_lock lock(mutex_);
    for (Code* code : fresh) code->module = module;
  }
  fresh.clear();
}

void Kernels::module_loaded(CUcontext context, std::uint32_t module_id, const void* cubin,
                            std::size_t bytes) {
  if (cubin == nullptr || bytes == 0) return;
  auto code = std::make_unique<Code>();
  code->module_id = module_id;
  code->context = context;
  code->hash = store_.add(cubin, bytes);
  code->bytes = bytes;
  const std::unique_lock lock(mutex_);
  if (context_.load(std::memory_order_relaxed) != context) context_.store(nullptr, std::memory_order_release);
  for (const auto& other : codes_) {
    if (other->hash == code->hash) code->cubin = other->cubin;
  }
  if (code->cubin == nullptr) code->cubin = std::make_shared<const Cubin>(read_cubin(cubin, bytes));
  for (const std::string& name : code->cubin->kernels) {
    if (first_code_.try_emplace(name, code->hash).first->second != code->hash) names_repeat_.store(true);
  }
  code->id = static_cast<std::uint32_t>(codes_.size() + 1);
  fresh.push_back(code.get());
  codes_.push_back(std::move(code));
  generation_.fetch_add(1, std::memory_order_release);
}

void Kernels::module_unloading(CUcontext context, std::uint32_t module_id) {
  const std::unique_lock lock(mutex_);
  for (const auto& code : codes_) {
    if (code->context == context && code->module_id == module_id) code->unloaded = true;
  }
  std::erase_if(fresh, [](const Code* code) { return code->unloaded; });
  // Handles may be used again for other kernels.
  by_handle_.clear();
  handles_.fetch_add(1, std::memory_order_release);
  names_.fetch_add(1, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
}

void Kernels::context_created(CUcontext context) {
  const std::unique_lock lock(mutex_);
  context_.store(contexts_ == 0 ? context : nullptr, std::memory_order_release);
  ++contexts_;
}

Kernel* Kernels::find(CUfunction function) {
  CUcontext context = context_.load(std::memory_order_acquire);
  if (context == nullptr && driver().cuCtxGetCurrent(&context) != CUDA_SUCCESS) return nullptr;
  return find(function, context, nullptr);
}

Kernel* Kernels::find(CUfunction function, CUcontext context, const char* symbol) {
  struct Slot {
    CUfunction function = nullptr;
    CUcontext context = nullptr;
    std::uint64_t handles = 0;
    Kernel* kernel = nullptr;
  };
  thread_local constinit std::array<Slot, 512> slots;
  const std::uint64_t handles = handles_.load(std::memory_order_acquire);
  Slot& slot = slots[(reinterpret_cast<std::uintptr_t>(function) >> 4 ^
                      reinterpret_cast<std::uintptr_t>(function) >> 13) %
                     slots.size()];
  if (slot.function == function && slot.context == context && slot.handles == handles) return slot.kernel;
  Kernel* const found = look_up(function, context, symbol);
  if (found != nullptr) slot = {function, context, handles, found};
  return found;
}

Kernel* Kernels::look_up(CUfunction function, CUcontext context, const char* symbol) {
  {
    const std::shared_lock lock(mutex_);
    const auto known = by_handle_.find({function, context});
    if (known != by_handle_.end()) return known->second;
  }
  return make(function, context, symbol);
}

Kernel* Kernels::make(CUfunction handle, CUcontext context, const char* symbol) {
  const OwnCalls own;
  begin_loading();
  CUmodule module = nullptr;
  const CUfunction function = as_function(handle, &module);
  FunctionFacts facts = examine(function);
  end_loading(module);
  CUdevice device = 0;
  driver().cuCtxGetDevice(&device);
  if (symbol == nullptr && (!follows_graphs() || function == nullptr ||
                            graph_driver().cuFuncGetName(&symbol, function) != CUDA_SUCCESS)) {
    return nullptr;
  }
  const std::string name = symbol;
  const std::unique_lock lock(mutex_);
  std::string why;
  const Code* code = code_of(module, context, name, &why);
  Kernel* made = kernel(name, code, static_cast<std::uint32_t>(device), std::move(why));
  if (!made->examined && function != nullptr) {
    made->examined = true;
    made->registers = facts.registers;
    made->static_shared = facts.static_shared;
    made->local_bytes = facts.local_bytes;
    made->parameters_known = facts.parameters_known;
    made->parameters = std::move(facts.parameters);
  }
  if (made->row == 0) add_row(*made);
  by_handle_[{handle, context}] = made;
  names_.fetch_add(1, std::memory_order_release);
  return made;
}

// Under the mutex.
const Code* Kernels::code_of(CUmodule module, CUcontext context, const std::string& symbol,
                             std::string* why) {
  Code* newest = nullptr;
  bool several = false;
  for (const auto& code : codes_) {
    if (code->context != context || code->unloaded) continue;
    if (!std::binary_search(code->cubin->kernels.begin(), code->cubin->kernels.end(), symbol)) continue;
    if (module != nullptr && code->module == module) return code.get();
    if (module != nullptr && code->module != nullptr) continue;
    several = several || (newest != nullptr && newest->hash != code->hash);
    newest = code.get();
  }
  // Loaded by a call that names no module (a symbol's address, a library): with one candidate there is no
  // doubt.
  if (newest != nullptr && !several && module != nullptr) newest->module = module;
  if (newest == nullptr) *why = "no code that CUPTI told of holds it";
  if (several) {
    *why =
        "several modules hold a kernel of that name, and the driver does not tell which of them this one is";
  }
  return newest;
}

Kernel* Kernels::kernel(const std::string& symbol, const Code* code, std::uint32_t device, std::string why) {
  const std::uint64_t id = kernel_id(symbol, code != nullptr ? code->hash : 0);
  std::unique_ptr<Kernel>& slot = kernels_[{id, device}];
  if (slot != nullptr) {
    slot->code = code;  // the same bytes, loaded anew, or told apart only now
    slot->unknown_code = std::move(why);
    return slot.get();
  }
  slot = std::make_unique<Kernel>();
  slot->id = id;
  slot->symbol = symbol;
  slot->demangled = demangle(symbol);
  slot->code = code;
  slot->unknown_code = std::move(why);
  slot->device = device;
  slot->kind = kind_of(symbol, code);
  for (auto same = kernels_.lower_bound({id, 0}); same != kernels_.end() && same->first.first == id; ++same) {
    if (same->second->calls != nullptr) slot->calls = same->second->calls;
  }
  if (slot->calls == nullptr) slot->calls = std::make_shared<Calls>();
  generation_.fetch_add(1, std::memory_order_release);
  return slot.get();
}

void Kernels::add_row(Kernel& kernel) {
  live::NewRow row;
  row.id = kernel.id;
  row.name = kernel.symbol;
  row.demangled = kernel.demangled;
  row.kind = kernel.kind;
  row.device = kernel.device;
  row.code_hash = kernel.code != nullptr ? kernel.code->hash : 0;
  row.vgprs = static_cast<std::uint32_t>(kernel.registers);
  row.lds_bytes = static_cast<std::uint32_t>(kernel.static_shared);
  row.scratch_bytes = static_cast<std::uint32_t>(kernel.local_bytes);
  kernel.row = live_.add_row(row);
}

// A name may be thousands of characters long, and records come by the hundred thousand: CUPTI keeps one copy
// of each name, which is known again by its address.
Kernel* Kernels::find_by_name(const CUpti_ActivityKernelPrefix& record) {
  struct Slot {
    const char* name = nullptr;
    std::uint32_t device = 0;
    std::uint64_t names = 0;
    Kernel* kernel = nullptr;
  };
  thread_local constinit std::array<Slot, 512> slots;
  const std::uint64_t names = names_.load(std::memory_order_acquire);
  const auto address = reinterpret_cast<std::uintptr_t>(record.name);
  Slot& slot = slots[(address >> 4 ^ address >> 13) % slots.size()];
  if (slot.name == record.name && slot.device == record.deviceId && slot.names == names) return slot.kernel;
  Kernel* const found = by_name(record);
  slot = {record.name, record.deviceId, names, found};
  return found;
}

Kernel* Kernels::by_name(const CUpti_ActivityKernelPrefix& record) {
  const std::string name = record.name != nullptr ? record.name : "(kernel without a name)";
  const std::pair<std::string, std::uint32_t> key(name, record.deviceId);
  {
    const std::shared_lock lock(mutex_);
    const auto known = by_name_.find(key);
    if (known != by_name_.end()) return known->second;
  }
  const std::unique_lock lock(mutex_);
  const Code* holder = nullptr;
  const auto first = first_code_.find(name);
  for (const auto& code : codes_) {
    if (first != first_code_.end() && code->hash == first->second) holder = code.get();
  }
  Kernel* made = kernel(name, holder, record.deviceId, holder != nullptr ? "" : "no code holds it");
  if (made->row == 0) {
    made->registers = record.registersPerThread;
    made->static_shared = record.staticSharedMemory;
    made->local_bytes = static_cast<int>(record.localMemoryPerThread);
    add_row(*made);
  }
  by_name_[key] = made;
  return made;
}

std::vector<Candidate> Kernels::candidates() const {
  const std::shared_lock lock(mutex_);
  std::map<std::uint64_t, Candidate> all;
  for (const auto& [key, kernel] : kernels_)
    all[kernel->id] = {kernel->id, kernel->symbol, kernel->demangled};
  for (const auto& code : codes_) {
    if (code->unloaded) continue;
    for (const std::string& symbol : code->cubin->kernels) {
      const std::uint64_t id = kernel_id(symbol, code->hash);
      if (!all.contains(id)) all[id] = {id, symbol, demangle(symbol)};
    }
  }
  std::vector<Candidate> list;
  list.reserve(all.size());
  for (auto& [id, candidate] : all) list.push_back(std::move(candidate));
  return list;
}

std::vector<const Code*> Kernels::loaded(CUcontext context) const {
  const std::shared_lock lock(mutex_);
  std::vector<const Code*> list;
  for (const auto& code : codes_) {
    if (code->context == context && !code->unloaded) list.push_back(code.get());
  }
  return list;
}

}  // namespace kerncap::interpose::cuda
