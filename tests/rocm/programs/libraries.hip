// Loads every code object of a folder whose name ends as given, one after the other, and says how much memory that took.
//   libraries FOLDER ENDING...
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "check.h"

static long peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long value = 0;
    if (word == "VmHWM:" && status >> value) return value;
  }
  return -1;
}

int main(int count, char** arguments) {
  EXPECT(count >= 3);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) {
    const std::string name = entry.path().filename();
    for (int i = 2; i < count; ++i) {
      const std::string ending = arguments[i];
      if (name.size() >= ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0)
        files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  HIP(hipFree(nullptr));
  std::uintmax_t bytes = 0;
  for (const std::string& file : files) {
    hipModule_t module;
    HIP(hipModuleLoad(&module, file.c_str()));
    HIP(hipModuleUnload(module));
    bytes += std::filesystem::file_size(file);
  }
  std::printf("objects %zu MiB %ju peak %ld\n", files.size(), bytes >> 20, peak_kib());
  return finish();
}
