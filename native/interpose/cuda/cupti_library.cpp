#include "interpose/cuda/cupti_library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

namespace kerncap::interpose::cuda {
namespace {

namespace fs = std::filesystem;

int collect(dl_phdr_info* info, std::size_t, void* data) {
  if (info->dlpi_name != nullptr && *info->dlpi_name != 0)
    static_cast<std::vector<std::string>*>(data)->emplace_back(info->dlpi_name);
  return 0;
}

// The newest libcupti.so* of a folder.
std::string in_folder(const fs::path& folder) {
  std::error_code error;
  std::string best;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("libcupti.so", 0) == 0) best = std::max(best, entry.path().string());
  }
  return best;
}

std::vector<fs::path> folders(const std::vector<std::string>& loaded) {
  std::vector<fs::path> list;
  for (const std::string& name : loaded) {
    const fs::path path(name);
    const std::string file = path.filename().string();
    if (file.rfind("libcudart.so", 0) != 0 && file.rfind("libcublas.so", 0) != 0 &&
        file.rfind("libnvrtc.so", 0) != 0) {
      continue;
    }
    list.push_back(path.parent_path());
    list.push_back(path.parent_path() / "../../cuda_cupti/lib");
    list.push_back(path.parent_path() / "../extras/CUPTI/lib64");
  }
  std::vector<fs::path> toolkits;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* value = std::getenv(variable); value != nullptr && *value != 0)
      toolkits.emplace_back(value);
  }
  toolkits.emplace_back("/usr/local/cuda");
  std::error_code error;
  std::vector<fs::path> versions;
  for (const fs::directory_entry& entry : fs::directory_iterator("/usr/local", error)) {
    if (entry.path().filename().string().rfind("cuda-", 0) == 0) versions.push_back(entry.path());
  }
  std::sort(versions.rbegin(), versions.rend());
  toolkits.insert(toolkits.end(), versions.begin(), versions.end());
  for (const fs::path& toolkit : toolkits) {
    list.push_back(toolkit / "extras/CUPTI/lib64");
    list.push_back(toolkit / "lib64");
    list.push_back(toolkit / "targets/x86_64-linux/lib");
  }
  return list;
}

}  // namespace

void* open_cupti(std::string* why) {
  const auto open = [&](const std::string& path) -> void* {
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) *why = ::dlerror();
    return library;
  };
  if (const char* named = std::getenv("KERNCAP_CUPTI"); named != nullptr && *named != 0) return open(named);
  std::vector<std::string> loaded;
  ::dl_iterate_phdr(collect, &loaded);
  for (const std::string& name : loaded) {
    if (name.find("/libcupti.so") == std::string::npos) continue;
    if (void* library = open(name)) return library;
  }
  for (const fs::path& folder : folders(loaded)) {
    const std::string path = in_folder(folder);
    if (path.empty()) continue;
    if (void* library = open(path)) return library;
  }
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"}) {
    if (void* library = open(name)) return library;
  }
  *why =
      "libcupti was found neither in the process, nor beside its CUDA libraries, nor in a toolkit "
      "(CUDA_HOME, "
      "/usr/local/cuda); name it in KERNCAP_CUPTI";
  return nullptr;
}

}  // namespace kerncap::interpose::cuda
