#include "replay/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "replay/protocol.h"
#include "snapshot/error.h"

namespace kerncap::replay {
namespace {

// Each extent is a mapping of its own, in two places, and a process may have 65530 of them
// (vm.max_map_count).
constexpr std::size_t kMostExtents = 8192;

// Where which file is mapped: for the signal handler, which only reads it. Never freed.
struct Mapping {
  std::uint64_t base, bytes, offset;
  const std::string* path;  // escaped for the protocol
};
struct Mappings {
  std::vector<Mapping> all;
  int fd = -1;
};
Mappings& mappings() {
  static auto* const made = new Mappings;  // NOLINT: it has to outlive everything
  return *made;
}

void remember(const void* base, std::uint64_t bytes, std::uint64_t offset, const std::string& path) {
  auto* const escaped = new std::string(escape(path));  // NOLINT: as above
  mappings().all.push_back({reinterpret_cast<std::uint64_t>(base), bytes, offset, escaped});
}

void put(int fd, const char* text, std::size_t bytes) {
  while (bytes != 0) {
    const ssize_t n = ::write(fd, text, bytes);
    if (n <= 0) return;
    text += n, bytes -= static_cast<std::size_t>(n);
  }
}

void on_bus_error(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  const Mappings& known = mappings();
  for (const Mapping& mapping : known.all) {
    if (address - mapping.base >= mapping.bytes) continue;
    static std::atomic_flag reported = ATOMIC_FLAG_INIT;
    while (reported.test_and_set()) ::pause();  // another thread reports, and ends the process
    char digits[24];
    std::size_t at = sizeof(digits);
    for (std::uint64_t value = mapping.offset + (address - mapping.base); at > 0; value /= 10) {
      digits[--at] = static_cast<char>('0' + value % 10);
      if (value < 10) break;
    }
    constexpr char kBegin[] = "error damaged 0x0 ";
    constexpr char kMiddle[] = "%20can%20no%20longer%20be%20read%20at%20offset%20";
    put(known.fd, kBegin, sizeof(kBegin) - 1);
    put(known.fd, mapping.path->data(), mapping.path->size());
    put(known.fd, kMiddle, sizeof(kMiddle) - 1);
    put(known.fd, digits + at, sizeof(digits) - at);
    put(known.fd, "\n", 1);
    _exit(6);
  }
  ::signal(SIGBUS, SIG_DFL);  // not ours: the access is made again, and ends the process
}

}  // namespace

void report_unreadable_files(int fd) {
  mappings().fd = fd;
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<unsigned char*>(data_), bytes_);
  for (const int fd : fds_) ::close(fd);
}

void MappedFile::open(const std::string& path, std::uint64_t bytes, snapshot::Stripes stripes) {
  path_ = path;
  bytes_ = bytes;
  stripes_ = stripes;
  if (bytes == 0) return;
  for (std::uint32_t i = 0; i < stripes.files; ++i) {
    const std::string name = snapshot::Stripes::name(path, i);
    const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) snapshot::throw_io("cannot open", name, errno);
    fds_.push_back(fd);
  }
  find_extents();
  // Holes are anonymous memory that nobody writes to: to read one of the file would take memory for its
  // zeros.
  void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) snapshot::throw_io("cannot map", path, errno);
  data_ = static_cast<const unsigned char*>(at);
  ::madvise(at, bytes, MADV_HUGEPAGE);  // the one huge page of zeros; no matter if it is refused
  for (const Range& extent : extents_) {
    map_part(extent.base, extent.bytes, static_cast<unsigned char*>(at) + extent.base, PROT_READ, MAP_SHARED);
  }
}

void MappedFile::map_part(std::uint64_t offset, std::uint64_t bytes, void* at, int protection,
                          int flags) const {
  const snapshot::Stripes::Place place = stripes_.place(offset);
  const std::string name = snapshot::Stripes::name(path_, place.file);
  if (::mmap(at, bytes, protection, flags | MAP_FIXED, fds_[place.file], static_cast<off_t>(place.offset)) ==
      MAP_FAILED) {
    snapshot::throw_io("cannot map", name, errno);
  }
  remember(at, bytes, place.offset, name);
}

std::vector<Range> MappedFile::extents_of(std::uint32_t number, std::uint64_t block) const {
  std::vector<Range> extents;
  const std::uint64_t bytes = stripes_.length(number, bytes_);
  const auto length = static_cast<off_t>(bytes);
  for (off_t at = 0; at < length;) {
    const off_t data = ::lseek(fds_[number], at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // a hole to the end
    const off_t hole = data < 0 ? length : ::lseek(fds_[number], data, SEEK_HOLE);
    // A filesystem that does not know its holes has none.
    const auto begin = data < 0 ? 0 : static_cast<std::uint64_t>(data) / block * block;
    const auto end =
        hole < 0 ? bytes : std::min(bytes, (static_cast<std::uint64_t>(hole) + block - 1) / block * block);
    if (!extents.empty() && begin <= extents.back().end()) {
      extents.back().bytes = std::max(extents.back().end(), end) - extents.back().base;
    } else {
      extents.push_back({begin, end - begin});
    }
    at = static_cast<off_t>(end);
  }
  return extents;
}

void MappedFile::find_extents() {
  for (std::uint64_t block = kHoleBlock;; block *= 2) {
    extents_.clear();
    for (std::uint32_t i = 0; i < stripes_.files; ++i) {
      for (Range extent : extents_of(i, block)) {
        while (extent.bytes != 0) {
          const std::uint64_t offset = stripes_.offset_of(i, extent.base);
          const std::uint64_t part = std::min(extent.bytes, stripes_.place(offset).left);
          extents_.push_back({offset, part});
          extent.base += part, extent.bytes -= part;
        }
      }
    }
    std::sort(extents_.begin(), extents_.end(),
              [](const Range& a, const Range& b) { return a.base < b.base; });
    const std::uint64_t stripes = bytes_ / snapshot::kStripeBytes;
    if (extents_.size() <= kMostExtents + (stripes_.files > 1 ? stripes : 0)) return;
  }
}

bool MappedFile::is_hole(std::uint64_t offset, std::uint64_t bytes) const {
  const auto next = std::upper_bound(extents_.begin(), extents_.end(), offset,
                                     [](std::uint64_t at, const Range& r) { return at < r.end(); });
  return next == extents_.end() || next->base >= offset + bytes;
}

void MappedFile::map_private(std::uint64_t offset, std::uint64_t bytes, std::uint64_t address) const {
  for (const Range& extent : extents_) {
    const std::uint64_t begin = std::max(extent.base, offset);
    const std::uint64_t end = std::min(extent.end(), offset + bytes);
    if (begin >= end) continue;
    map_part(begin, end - begin, reinterpret_cast<void*>(address + (begin - offset)), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_NORESERVE);
  }
}

void MappedFile::read_ahead(std::uint64_t offset, std::uint64_t bytes) const {
  if (fds_.empty() || offset >= bytes_) return;
  const snapshot::Stripes::Place place = stripes_.place(offset);
  ::posix_fadvise(fds_[place.file], static_cast<off_t>(place.offset), static_cast<off_t>(bytes),
                  POSIX_FADV_WILLNEED);
}

}  // namespace kerncap::replay
