#include "sim/hsa/loader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "sim/hsa/load_image.h"
#include "sim/hsa/runtime.h"

namespace kerncap::sim::rt {

using namespace kerncap::abi;  // NOLINT

CodeObjectReader::~CodeObjectReader() {
  if (mapping != nullptr) munmap(mapping, mapping_bytes);
}

LoadedSymbol* Executable::find(std::string_view name, const Agent* agent) const {
  auto [first, last] = by_name.equal_range(std::string(name));
  for (auto it = first; it != last; ++it)
    if (it->second->agent == agent || it->second->agent == nullptr) return it->second;
  return nullptr;
}

hsa_status_t Loader::add_reader(std::shared_ptr<CodeObjectReader> reader, hsa_code_object_reader_t* out) {
  std::lock_guard lock(mutex_);
  out->handle = reinterpret_cast<std::uint64_t>(reader.get());
  readers_[out->handle] = std::move(reader);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t Loader::add_file_reader(int file, std::uint64_t offset, std::uint64_t size,
                                     hsa_code_object_reader_t* out) {
  struct stat info{};
  if (fstat(file, &info) != 0) return HSA_STATUS_ERROR_INVALID_FILE;
  const auto file_bytes = static_cast<std::uint64_t>(info.st_size);
  if (size == 0) size = offset < file_bytes ? file_bytes - offset : 0;
  if (size == 0 || offset >= file_bytes || file_bytes - offset < size) return HSA_STATUS_ERROR_INVALID_FILE;
  auto reader = std::make_shared<CodeObjectReader>();
  const std::uint64_t first = page_down(offset);
  reader->mapping_bytes = size + (offset - first);
  void* mapped =
      mmap(nullptr, reader->mapping_bytes, PROT_READ, MAP_PRIVATE, file, static_cast<off_t>(first));
  if (mapped == MAP_FAILED) return HSA_STATUS_ERROR_INVALID_FILE;
  reader->mapping = mapped;
  reader->bytes = {static_cast<const unsigned char*>(mapped) + (offset - first), size};
  reader->file = file;
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  reader->uri = "file://" + std::string(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  if (offset != 0 || size != file_bytes)
    reader->uri += "#offset=" + std::to_string(offset) + "&size=" + std::to_string(size);
  return add_reader(std::move(reader), out);
}

hsa_status_t Loader::remove_reader(hsa_code_object_reader_t reader) {
  std::lock_guard lock(mutex_);
  return readers_.erase(reader.handle) != 0 ? HSA_STATUS_SUCCESS
                                            : HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER;
}

std::shared_ptr<CodeObjectReader> Loader::find_reader(hsa_code_object_reader_t reader) const {
  std::lock_guard lock(mutex_);
  auto it = readers_.find(reader.handle);
  return it == readers_.end() ? nullptr : it->second;
}

hsa_executable_t Loader::create(hsa_profile_t profile, hsa_default_float_rounding_mode_t rounding) {
  auto executable = std::make_shared<Executable>();
  executable->profile = profile;
  executable->rounding = rounding;
  std::lock_guard lock(mutex_);
  const auto handle = reinterpret_cast<std::uint64_t>(executable.get());
  executables_[handle] = std::move(executable);
  return {handle};
}

std::shared_ptr<Executable> Loader::find(hsa_executable_t executable) const {
  std::lock_guard lock(mutex_);
  auto it = executables_.find(executable.handle);
  return it == executables_.end() ? nullptr : it->second;
}

std::vector<hsa_executable_t> Loader::executables() const {
  std::lock_guard lock(mutex_);
  std::vector<hsa_executable_t> out;
  for (const auto& [handle, executable] : executables_) out.push_back({handle});
  return out;
}

hsa_status_t Loader::load(Executable* executable, Agent* agent, std::shared_ptr<CodeObjectReader> reader,
                          LoadedCodeObject** out) {
  std::string error;
  hsa_status_t status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
  auto object = std::make_unique<LoadedCodeObject>();
  object->executable = executable;
  object->agent = agent;
  object->reader = reader;
  std::lock_guard lock(executable->mutex);
  if (std::optional<ElfImage> image = ElfImage::parse(reader->bytes, &error))
    status = load_image(runtime_, *image, object.get(), &error);
  if (status != HSA_STATUS_SUCCESS) {
    complain("cannot load code object %s: %s", reader->uri.c_str(), error.c_str());
    unload(*object);
    return status;
  }
  {
    std::lock_guard table_lock(mutex_);
    by_end_[object->base + object->size] = object.get();
  }
  for (const auto& symbol : object->symbols) register_symbol(executable, symbol.get());
  if (out != nullptr) *out = object.get();
  executable->objects.push_back(std::move(object));
  return HSA_STATUS_SUCCESS;
}

void Loader::register_symbol(Executable* executable, LoadedSymbol* symbol) {
  executable->by_name.emplace(symbol->name, symbol);
  std::lock_guard lock(mutex_);
  symbols_[reinterpret_cast<std::uint64_t>(symbol)] = symbol;
}

void Loader::define(Executable* executable, std::unique_ptr<LoadedSymbol> symbol) {
  register_symbol(executable, symbol.get());
  executable->defined.push_back(std::move(symbol));
}

void Loader::unload(LoadedCodeObject& object) {
  if (object.base == 0) return;
  {
    std::lock_guard lock(mutex_);
    by_end_.erase(object.base + object.size);
  }
  if (!object.published.empty()) object.agent->gpu->unload_code(object.code);
  for (std::uint64_t base : object.published) object.agent->memory.remove(base);
  runtime_->memory.free(reinterpret_cast<void*>(object.base));
}

hsa_status_t Loader::destroy(hsa_executable_t handle) {
  std::shared_ptr<Executable> executable;
  {
    std::lock_guard lock(mutex_);
    auto it = executables_.find(handle.handle);
    if (it == executables_.end()) return HSA_STATUS_ERROR_INVALID_EXECUTABLE;
    executable = std::move(it->second);
    executables_.erase(it);
    for (const auto& [name, symbol] : executable->by_name)
      symbols_.erase(reinterpret_cast<std::uint64_t>(symbol));
  }
  for (const auto& object : executable->objects) unload(*object);
  return HSA_STATUS_SUCCESS;
}

// Handles are pointers; they are only followed once they were found among the living.
LoadedSymbol* Loader::find_symbol(hsa_executable_symbol_t handle) const {
  std::lock_guard lock(mutex_);
  auto it = symbols_.find(handle.handle);
  return it == symbols_.end() ? nullptr : it->second;
}

LoadedCodeObject* Loader::find_loaded(hsa_loaded_code_object_t handle) const {
  std::lock_guard lock(mutex_);
  for (const auto& [end, object] : by_end_)
    if (reinterpret_cast<std::uint64_t>(object) == handle.handle) return object;
  return nullptr;
}

LoadedCodeObject* Loader::find_by_address(std::uint64_t address) const {
  std::lock_guard lock(mutex_);
  auto it = by_end_.upper_bound(address);
  return it != by_end_.end() && it->second->base <= address ? it->second : nullptr;
}

std::string Loader::source_line(std::uint64_t pc) const {
  std::lock_guard lock(mutex_);
  auto it = by_end_.upper_bound(pc);
  if (it == by_end_.end() || it->second->base > pc) return {};
  return find_source_line(it->second->debug, pc - it->second->delta());
}

}  // namespace kerncap::sim::rt
