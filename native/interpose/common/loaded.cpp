#include "interpose/common/loaded.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "live/control_file.h"
#include "live/file_size_guard.h"

namespace kerncap::interpose {
namespace {

constexpr const char* kName = "/loaded";
constexpr std::size_t kMostBytes = 256 << 10;  // of the list: thousands of programs that none needs to know

// What a file holds, after `text`.
std::string read_all(int fd, std::string text = {}) {
  char piece[16384];
  for (;;) {
    const ssize_t got = ::read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(piece, static_cast<std::size_t>(got));
  }
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool worth_noting(std::string_view path) {
  if (path.empty() || path.front() != '/') return false;  // [vdso] and the like
  bool system = false;
  for (const std::string_view prefix : {"/usr/lib", "/lib", "/dev/", "/memfd:"})
    system = system || path.starts_with(prefix);
  if (!system) return true;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view part : {"cuda", "hip", "hsa", "OpenCL", "ze_loader", "vulkan", "nvrtc", "roc"})
    if (has(name, part)) return true;
  return false;
}

// Lines of the files of `maps` that `known` does not have yet.
std::string new_lines(std::string_view maps, const std::string& known) {
  std::string added = "\n";  // so that each path is found between two ends of line
  while (!maps.empty()) {
    const std::size_t end = maps.find('\n');
    const std::string_view line = maps.substr(0, end);
    maps.remove_prefix(end == std::string_view::npos ? maps.size() : end + 1);
    // ADDRESSES PERMISSIONS OFFSET DEVICE INODE PATH
    const std::size_t permissions = line.find(' ');
    const std::size_t path_at = line.find('/');
    if (permissions == std::string_view::npos || path_at == std::string_view::npos) continue;
    if (!has(line.substr(permissions, 5), "x") || !worth_noting(line.substr(path_at))) continue;
    std::string whole(1, '\n');
    whole.append(line.substr(path_at)).push_back('\n');
    if (!has(known, whole) && !has(added, whole)) added.append(whole, 1);
  }
  return added.substr(1);
}

// How often libraries were loaded.
unsigned long long loads() {
  unsigned long long found = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;
      },
      &found);
  return found;
}

}  // namespace

void note_loaded_in(const std::string& session) {
  const int source = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (source < 0) return;
  const std::string maps = read_all(source);
  ::close(source);
  const live::FileSizeGuard guard;
  const int list =
      ::open((session + kName).c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (list < 0) return;
  struct stat info{};
  if (::fstat(list, &info) == 0 && S_ISREG(info.st_mode) &&
      static_cast<std::size_t>(info.st_size) < kMostBytes) {
    const std::string lines = new_lines(maps, read_all(list, "\n"));
    // One call, so that lines of several processes do not mix.
    if (!lines.empty() && ::write(list, lines.data(), lines.size()) < 0) errno = 0;
  }
  ::close(list);
}

void note_loaded() {
  static unsigned long long noted = 0;
  const char* session = std::getenv("KERNCAP_SESSION");
  const unsigned long long now = loads();
  if (session == nullptr || *session == 0 || now == noted) return;
  noted = now;
  std::string why;  // what is no session is left alone, and said where something is dispatched
  if (live::ControlFile::open(session, &why) != nullptr) note_loaded_in(session);
}

}  // namespace kerncap::interpose
