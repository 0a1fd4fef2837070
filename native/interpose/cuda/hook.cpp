#include "interpose/cuda/hook.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <vector>

#include "interpose/cuda/movable_code.h"

namespace kerncap::interpose::cuda {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kJump = 5;      // e9 and 32 bits
constexpr std::size_t kFarJump = 14;  // ff 25 and the address behind it
constexpr std::size_t kLongestMoved = kJump - 1 + 15;
constexpr std::size_t kLooked = 32;  // bytes of a function that are looked at
// What a hook has in the page near the functions: a jump to the replacement, and the function's beginning
// with a jump to the rest of it.
constexpr std::size_t kMovedAt = 16;
constexpr std::size_t kStubBytes = 64;
static_assert(kFarJump <= kMovedAt && kMovedAt + kLongestMoved + kFarJump <= kStubBytes);
constexpr std::int64_t kReach = std::int64_t{1} << 31;

struct Mapping {
  std::uint64_t begin = 0, end = 0;
  std::string access;
};

struct Place {
  const Hook* hook;
  unsigned char* code;  // where the jump goes
  std::size_t moved;
};

std::uint64_t number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

std::vector<Mapping> mappings() {
  std::vector<Mapping> list;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    unsigned long begin = 0, end = 0;
    char access[8] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, access) == 3)
      list.push_back({begin, end, access});
  }
  return list;
}

bool is_code(const std::vector<Mapping>& list, std::uint64_t begin, std::uint64_t end) {
  return std::any_of(list.begin(), list.end(), [&](const Mapping& m) {
    return m.begin <= begin && end <= m.end && m.access.starts_with("r-x");
  });
}

bool in_reach(std::uint64_t from, std::uint64_t to, std::uint64_t slack) {
  const auto distance = static_cast<std::int64_t>(to - from);
  const auto most = kReach - static_cast<std::int64_t>(slack);
  return distance > -most && distance < most;
}

// Memory from which both ends of the functions can be reached by a near jump; null: there is none.
void* map_near(const std::vector<Mapping>& list, std::uint64_t first, std::uint64_t last, std::size_t bytes) {
  std::vector<std::uint64_t> candidates;
  for (std::size_t i = 0; i + 1 < list.size(); ++i) {
    if (list[i + 1].begin - list[i].end < bytes) continue;
    candidates.push_back(list[i].end);
    candidates.push_back(list[i + 1].begin - bytes);
  }
  std::erase_if(candidates,
                [&](std::uint64_t c) { return !in_reach(c, first, bytes) || !in_reach(c, last, bytes); });
  const auto distance = [&](std::uint64_t c) { return c < first ? first - c : c - first; };
  std::sort(candidates.begin(), candidates.end(),
            [&](std::uint64_t a, std::uint64_t b) { return distance(a) < distance(b); });
  for (const std::uint64_t candidate : candidates) {
    void* const at = ::mmap(reinterpret_cast<void*>(candidate), bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED) continue;
    if (number(at) == candidate) return at;
    ::munmap(at, bytes);  // a kernel before 4.17, which takes the address as a wish
  }
  return nullptr;
}

void write_far_jump(unsigned char* at, const void* target) {
  const unsigned char jump[6] = {0xff, 0x25, 0, 0, 0, 0};
  std::memcpy(at, jump, sizeof jump);
  std::memcpy(at + sizeof jump, &target, sizeof target);
}

void write_jump(unsigned char* at, const unsigned char* target) {
  const auto distance = static_cast<std::int32_t>(target - (at + kJump));
  at[0] = 0xe9;
  std::memcpy(at + 1, &distance, sizeof distance);
}

// The pages that the jumps lie in.
std::set<std::uint64_t> pages_of(const std::vector<Place>& places, std::uint64_t page_bytes) {
  std::set<std::uint64_t> pages;
  for (const Place& place : places) {
    pages.insert(number(place.code) / page_bytes);
    pages.insert((number(place.code) + kJump - 1) / page_bytes);
  }
  return pages;
}

}  // namespace

bool install(std::span<const Hook> hooks, std::string* why) {
  const std::vector<Mapping> list = mappings();
  std::vector<Place> places;
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max(), last = 0;
  for (const Hook& hook : hooks) {
    auto* code = static_cast<unsigned char*>(hook.function);
    if (!is_code(list, number(code), number(code) + kLooked)) {
      *why = "its code lies in memory that is no plain code";
      return false;
    }
    code += landing_pad({code, kLooked});
    const std::size_t moved = movable_bytes({code, kLooked - 4}, kJump);
    if (moved == 0 || moved > kLongestMoved) {
      *why = "it begins with instructions that cannot be moved";
      return false;
    }
    places.push_back({&hook, code, moved});
    first = std::min(first, number(code));
    last = std::max(last, number(code));
  }
  if (places.empty()) return true;
  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (places.size() * kStubBytes + page_bytes - 1) / page_bytes * page_bytes;
  auto* const stubs = static_cast<unsigned char*>(map_near(list, first, last, bytes));
  if (stubs == nullptr) {
    *why = "there is no free address near its code";
    return false;
  }
  std::memset(stubs, 0xcc, bytes);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    unsigned char* const stub = stubs + i * kStubBytes;
    write_far_jump(stub, place.hook->replacement);
    std::memcpy(stub + kMovedAt, place.code, place.moved);
    write_far_jump(stub + kMovedAt + place.moved, place.code + place.moved);
  }
  const std::set<std::uint64_t> pages = pages_of(places, page_bytes);
  const auto protect = [&](std::uint64_t page, int access) {
    return ::mprotect(reinterpret_cast<void*>(page * page_bytes), page_bytes, access) == 0;
  };
  bool writable = ::mprotect(stubs, bytes, PROT_READ | PROT_EXEC) == 0;
  // Code beside the functions may be running: the pages stay executable.
  for (const std::uint64_t page : pages)
    writable = writable && protect(page, PROT_READ | PROT_WRITE | PROT_EXEC);
  if (writable) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      *places[i].hook->original = stubs + i * kStubBytes + kMovedAt;
      write_jump(places[i].code, stubs + i * kStubBytes);
    }
  } else {
    *why = std::string("its code cannot be written to: ") + std::strerror(errno);
  }
  for (const std::uint64_t page : pages) protect(page, PROT_READ | PROT_EXEC);
  if (!writable) ::munmap(stubs, bytes);
  return writable;
}

#else

bool install(std::span<const Hook> hooks, std::string* why) {
  if (hooks.empty()) return true;
  *why = "this processor's code cannot be moved";
  return false;
}

#endif

}  // namespace kerncap::interpose::cuda
