#include "replay/reserve.h"

#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "replay/error.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace kerncap::replay {
namespace {

constexpr std::uint64_t kPage = 4096;
// Of the addresses that a process has, unless it asks for higher ones; the last page is never given out.
constexpr std::uint64_t kUserEnd = (std::uint64_t{1} << 47) - kPage;
constexpr const char* kAttemptVariable = "KERNCAP_REPLAY_LAYOUT";

// The kernel gives the same error for addresses that no process has here.
bool lacks_memory(int error, const Range& range) { return error == ENOMEM && range.end() <= kUserEnd; }

}  // namespace

Range whole_pages(const Range& range) {
  const std::uint64_t base = range.base / kPage * kPage;
  return {base, (range.end() + kPage - 1) / kPage * kPage - base};
}

Reservation::Reservation(std::vector<Placeholder> wanted) : wanted_(std::move(wanted)) {
  for (Placeholder& placeholder : wanted_) {
    void* const at = reinterpret_cast<void*>(placeholder.range.base);
    void* const got = mmap(at, placeholder.range.bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    placeholder.held = got == at && placeholder.keep;
    if (placeholder.held) continue;
    if (got == at) {
      munmap(got, placeholder.range.bytes);
      continue;
    }
    const int reason = got == MAP_FAILED ? errno : EEXIST;
    if (got != MAP_FAILED) munmap(got, placeholder.range.bytes);  // kernels before 4.17 ignore the flag
    if (!placeholder.required || !collision_.empty()) continue;
    short_of_memory_ = lacks_memory(reason, placeholder.range);
    collision_ = placeholder.what + " lies at " + hex(placeholder.range.base) + "-" +
                 hex(placeholder.range.end()) + " and that range cannot be had here: ";
    collision_ += reason == EEXIST ? mapped_there(placeholder.range) + " is there" : std::strerror(reason);
  }
}

bool Reservation::holds(const Range& range) const {
  for (const Placeholder& placeholder : wanted_) {
    if (placeholder.held && placeholder.range.base <= range.base && range.end() <= placeholder.range.end()) {
      return true;
    }
  }
  return false;
}

bool Reservation::release(const Range& range) {
  if (!holds(range)) return false;
  return munmap(reinterpret_cast<void*>(range.base), range.bytes) == 0;
}

void map_own(const Range& range) {
  void* const at = reinterpret_cast<void*>(range.base);
  void* const got = ::mmap(at, range.bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == at) return;
  const int error = errno;
  if (got != MAP_FAILED) ::munmap(got, range.bytes);
  throw ReplayError(lacks_memory(error, range) ? ErrorClass::device : ErrorClass::collision,
                    "cannot map " + hex(range.base) + "-" + hex(range.end()) + ": " + std::strerror(error));
}

std::string mapped_there(const Range& range) {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return "something";
  std::string found = kNothingThere;
  char line[4352];
  while (std::fgets(line, sizeof(line), maps) != nullptr) {
    std::uint64_t begin = 0, end = 0;
    int name_at = 0;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &begin, &end, &name_at) < 2) continue;
    if (begin >= range.end() || end <= range.base) continue;
    std::string name = name_at > 0 ? std::string(line + name_at) : std::string();
    while (!name.empty() && (name.back() == '\n' || name.back() == ' ')) name.pop_back();
    found =
        (name.empty() ? std::string("memory of the process") : name) + " at " + hex(begin) + "-" + hex(end);
    break;
  }
  std::fclose(maps);
  return found;
}

unsigned layout_attempt() {
  const char* const text = std::getenv(kAttemptVariable);
  return text == nullptr ? 0 : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

void start_again(char** argv) {
  // Without randomisation the new layout would be the old one, and the collision certain.
  const int now = personality(0xffffffff);
  if (now != -1)
    personality(static_cast<unsigned long>(now) & ~static_cast<unsigned long>(ADDR_NO_RANDOMIZE));
  setenv(kAttemptVariable, std::to_string(layout_attempt() + 1).c_str(), 1);
  execv("/proc/self/exe", argv);
}

}  // namespace kerncap::replay
