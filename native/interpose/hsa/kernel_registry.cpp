#include "interpose/hsa/kernel_registry.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "interpose/hsa/api.h"

namespace kerncap::interpose {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

template <typename T>
bool loaded_info(hsa_loaded_code_object_t loaded, hsa_ven_amd_loader_loaded_code_object_info_t attribute,
                 T* value) {
  const auto get = api().loader.hsa_ven_amd_loader_loaded_code_object_get_info;
  return get != nullptr && get(loaded, attribute, value) == HSA_STATUS_SUCCESS;
}

template <typename T>
bool symbol_info(hsa_executable_symbol_t symbol, hsa_executable_symbol_info_t attribute, T* value) {
  return api().core.hsa_executable_symbol_get_info_fn(symbol, attribute, value) == HSA_STATUS_SUCCESS;
}

std::string symbol_name(hsa_executable_symbol_t symbol) {
  std::uint32_t length = 0;
  if (!symbol_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH, &length)) return {};
  std::string name(length + 1, '\0');
  if (!symbol_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME, name.data())) return {};
  name.resize(::strnlen(name.c_str(), length));
  return name;
}

std::vector<unsigned char> whole_file(int fd) {
  struct stat info;
  std::vector<unsigned char> bytes;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return bytes;
  bytes.resize(static_cast<std::size_t>(info.st_size));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      bytes.clear();
      break;
    }
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

}  // namespace

void KernelRegistry::reader_created(std::uint64_t reader, const void* data, std::size_t bytes) {
  const std::unique_lock lock(mutex_);
  readers_[reader] = {data, bytes, {}};
}

void KernelRegistry::reader_created(std::uint64_t reader, int file) {
  std::vector<unsigned char> bytes = whole_file(file);
  if (bytes.empty()) return;
  const std::unique_lock lock(mutex_);
  readers_[reader] = {nullptr, 0, std::move(bytes)};
}

void KernelRegistry::reader_destroyed(std::uint64_t reader) {
  const std::unique_lock lock(mutex_);
  readers_.erase(reader);
}

KernelRegistry::Content KernelRegistry::take_content(std::uint64_t reader, hsa_loaded_code_object_t loaded) {
  Content content;
  const void* data = nullptr;
  std::size_t bytes = 0;
  if (const auto found = readers_.find(reader); reader != 0 && found != readers_.end()) {
    const Reader& r = found->second;
    data = r.copy.empty() ? r.data : r.copy.data();
    bytes = r.copy.empty() ? r.bytes : r.copy.size();
  } else {
    // A reader that was made some other way; the loader knows the memory it read from.
    std::uint64_t base = 0, size = 0;
    if (loaded_info(loaded, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE,
                    &base) &&
        loaded_info(loaded, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE,
                    &size)) {
      data = reinterpret_cast<const void*>(base);
      bytes = size;
    }
  }
  if (data == nullptr || bytes == 0) return content;
  content.hash = store_.add(data, bytes);
  content.bytes = bytes;
  content.metadata = metadata_[content.hash].lock();
  if (content.metadata == nullptr) {
    content.metadata = std::make_shared<const CodeMetadata>(read_code_metadata(data, bytes));
    metadata_[content.hash] = content.metadata;
  }
  return content;
}

void KernelRegistry::code_loaded(hsa_executable_t executable, hsa_agent_t agent, std::uint64_t reader,
                                 hsa_loaded_code_object_t loaded) {
  const std::unique_lock lock(mutex_);
  Loaded entry;
  const Content content = take_content(reader, loaded);
  entry.metadata = content.metadata;
  LoadedCode& code = entry.code;
  code.id = next_id_++;
  code.agent = agent;
  code.executable = executable.handle;
  code.content_hash = content.hash;
  code.content_bytes = content.bytes;
  loaded_info(loaded, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE, &code.load_base);
  loaded_info(loaded, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE, &code.load_bytes);
  loaded_info(loaded, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA, &code.load_delta);
  std::uint32_t uri_length = 0;
  if (loaded_info(loaded, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH, &uri_length) &&
      uri_length != 0) {
    std::string uri(uri_length + 1, '\0');
    if (loaded_info(loaded, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI, uri.data())) {
      code.uri = uri.substr(0, ::strnlen(uri.c_str(), uri_length));
    }
  }
  loaded_.push_back(std::move(entry));
}

void KernelRegistry::executable_frozen(hsa_executable_t executable) {
  struct Context {
    KernelRegistry* registry;
    std::uint64_t executable;
  } context{this, executable.handle};
  const std::unique_lock lock(mutex_);
  api().core.hsa_executable_iterate_symbols_fn(
      executable,
      [](hsa_executable_t, hsa_executable_symbol_t symbol, void* data) {
        const auto* c = static_cast<const Context*>(data);
        c->registry->add_symbol(symbol, c->executable);
        return HSA_STATUS_SUCCESS;
      },
      &context);
  generation_.fetch_add(1, std::memory_order_release);
}

KernelRegistry::Loaded* KernelRegistry::holder(std::uint64_t address, hsa_agent_t agent,
                                               std::uint64_t executable) {
  Loaded* only = nullptr;
  unsigned count = 0;
  for (Loaded& entry : loaded_) {
    const LoadedCode& code = entry.code;
    if (code.executable != executable || code.agent.handle != agent.handle) continue;
    if (address - code.load_base < code.load_bytes) return &entry;
    only = &entry;
    ++count;
  }
  return count == 1 && only->code.load_bytes == 0 ? only : nullptr;  // a runtime without load addresses
}

void KernelRegistry::add_symbol(hsa_executable_symbol_t symbol, std::uint64_t executable) {
  hsa_symbol_kind_t kind{};
  hsa_agent_t agent{};
  if (!symbol_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind)) return;
  symbol_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_AGENT, &agent);
  std::string name = symbol_name(symbol);
  if (name.empty()) return;
  if (kind == HSA_SYMBOL_KIND_KERNEL) {
    std::uint64_t object = 0;
    if (!symbol_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object) || object == 0) return;
    if (name.ends_with(".kd")) name.resize(name.size() - 3);
    const Loaded* where = holder(object, agent, executable);
    Kernel* found = kernel(name, where, agents_.find(agent));
    std::uint32_t kernarg_bytes = 0;
    if (symbol_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &kernarg_bytes)) {
      found->kernarg_bytes = std::max(found->kernarg_bytes, kernarg_bytes);
    }
    by_object_[object] = {found, executable};
  } else if (kind == HSA_SYMBOL_KIND_VARIABLE) {
    LoadedVariable variable;
    std::uint32_t bytes = 0;
    if (!symbol_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &variable.address)) return;
    symbol_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE, &bytes);
    variable.bytes = bytes;
    variable.name = std::move(name);
    if (Loaded* where = holder(variable.address, agent, executable))
      where->code.variables.push_back(std::move(variable));
  }
}

Kernel* KernelRegistry::kernel(const std::string& symbol, const Loaded* where, const AgentInfo* agent) {
  const std::uint64_t code_hash = where != nullptr ? where->code.content_hash : 0;
  const std::uint64_t id = kernel_id(symbol, code_hash);
  const std::uint32_t device = agent != nullptr ? agent->index : 0;
  std::unique_ptr<Kernel>& slot = kernels_[{id, device}];
  if (slot != nullptr) return slot.get();
  slot = std::make_unique<Kernel>();
  Kernel& k = *slot;
  k.id = id;
  k.symbol = symbol;
  k.code_hash = code_hash;
  k.device = device;
  for (auto same = kernels_.lower_bound({id, 0}); same != kernels_.end() && same->first.first == id; ++same) {
    if (same->second->calls != nullptr) k.calls = same->second->calls;
  }
  if (k.calls == nullptr) k.calls = std::make_shared<Calls>();
  bool has_language = true;
  if (where != nullptr && where->metadata != nullptr) {
    const auto found = where->metadata->kernels.find(symbol);
    if (found != where->metadata->kernels.end()) {
      const KernelMetadata& metadata = found->second;
      has_language = metadata.has_language;
      k.registers = kernel_registers(metadata, agent != nullptr ? agent->name : std::string());
      k.kernarg_bytes = metadata.kernarg_bytes;
      k.hostcall_offset = metadata.hostcall_offset;
      k.multigrid_offset = metadata.multigrid_offset;
    }
  }
  k.kind = kernel_kind(symbol, has_language);
  return &k;
}

void KernelRegistry::executable_destroyed(hsa_executable_t executable) {
  const std::unique_lock lock(mutex_);
  std::erase_if(by_object_, [&](const auto& entry) { return entry.second.executable == executable.handle; });
  std::erase_if(loaded_, [&](const Loaded& entry) { return entry.code.executable == executable.handle; });
  std::erase_if(metadata_, [](const auto& entry) { return entry.second.expired(); });
  generation_.fetch_add(1, std::memory_order_release);
}

void KernelRegistry::adopt_loaded() {
  const auto iterate = api().loader.hsa_ven_amd_loader_iterate_executables;
  const auto objects = api().loader.hsa_ven_amd_loader_executable_iterate_loaded_code_objects;
  if (iterate == nullptr || objects == nullptr) return;
  std::vector<hsa_executable_t> executables;
  iterate(
      [](hsa_executable_t executable, void* data) {
        static_cast<std::vector<hsa_executable_t>*>(data)->push_back(executable);
        return HSA_STATUS_SUCCESS;
      },
      &executables);
  for (const hsa_executable_t executable : executables) {
    {
      const std::shared_lock lock(mutex_);
      const bool known = std::any_of(loaded_.begin(), loaded_.end(), [&](const Loaded& entry) {
        return entry.code.executable == executable.handle;
      });
      if (known) continue;
    }
    objects(
        executable,
        [](hsa_executable_t owner, hsa_loaded_code_object_t loaded, void* data) {
          hsa_agent_t agent{};
          loaded_info(loaded, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT, &agent);
          static_cast<KernelRegistry*>(data)->code_loaded(owner, agent, 0, loaded);
          return HSA_STATUS_SUCCESS;
        },
        this);
    executable_frozen(executable);
  }
}

Kernel* KernelRegistry::find(std::uint64_t kernel_object) {
  const std::shared_lock lock(mutex_);
  const auto found = by_object_.find(kernel_object);
  return found != by_object_.end() ? found->second.kernel : nullptr;
}

std::vector<Kernel*> KernelRegistry::loaded_kernels() const {
  const std::shared_lock lock(mutex_);
  std::vector<Kernel*> all;
  all.reserve(by_object_.size());
  for (const auto& [object, entry] : by_object_) all.push_back(entry.kernel);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<LoadedCode> KernelRegistry::loaded() const {
  const std::shared_lock lock(mutex_);
  std::vector<LoadedCode> all;
  all.reserve(loaded_.size());
  for (const Loaded& entry : loaded_) all.push_back(entry.code);
  return all;
}

}  // namespace kerncap::interpose
