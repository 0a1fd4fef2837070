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

// Each extent, each repeat and each gap between them is a mapping of its own, in two places, and a process
// may have 65530 of them (vm.max_map_count).
constexpr std::size_t kMostExtents = 8192;
constexpr std::size_t kFewestExtents = 1024;

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

void MappedFile::open(const std::string& path, std::uint64_t bytes, snapshot::Layout layout) {
  path_ = path;
  bytes_ = bytes;
  layout_ = std::move(layout);
  if (bytes == 0) return;
  for (std::uint32_t i = 0; i < layout_.stripes.files; ++i) {
    const std::string name = snapshot::Stripes::name(path, i);
    const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) snapshot::throw_io("cannot open", name, errno);
    fds_.push_back(fd);
  }
  find_parts();
  // Holes are anonymous memory that nobody writes to: to read one of the file would take memory for its
  // zeros.
  void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) snapshot::throw_io("cannot map", path, errno);
  data_ = static_cast<const unsigned char*>(at);
  ::madvise(at, bytes, MADV_HUGEPAGE);  // the one huge page of zeros; no matter if it is refused
  for (const Part& part : parts_) {
    map_part(part.from, part.range.bytes, static_cast<unsigned char*>(at) + part.range.base, PROT_READ,
             MAP_SHARED);
  }
}

void MappedFile::map_part(std::uint64_t from, std::uint64_t bytes, void* at, int protection,
                          int flags) const {
  const snapshot::Stripes::Place place = layout_.stripes.place(from);
  const std::string name = snapshot::Stripes::name(path_, place.file);
  if (::mmap(at, bytes, protection, flags | MAP_FIXED, fds_[place.file], static_cast<off_t>(place.offset)) ==
      MAP_FAILED) {
    snapshot::throw_io("cannot map", name, errno);
  }
  remember(at, bytes, place.offset, name);
}

std::vector<Range> MappedFile::extents_of(std::uint32_t number, std::uint64_t block) const {
  std::vector<Range> extents;
  const std::uint64_t bytes = layout_.stripes.length(number, bytes_);
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

std::vector<Range> MappedFile::find_extents() const {
  const snapshot::Stripes& stripes = layout_.stripes;
  // The more repeats, the fewer extents: holes between them are then read as the file's.
  const std::size_t most = kMostExtents - std::min(layout_.repeats.size(), kMostExtents - kFewestExtents) +
                           (stripes.files > 1 ? bytes_ / snapshot::kStripeBytes : 0);
  for (std::uint64_t block = kHoleBlock;; block *= 2) {
    std::vector<Range> extents;
    for (std::uint32_t i = 0; i < stripes.files; ++i) {
      for (Range extent : extents_of(i, block)) {
        while (extent.bytes != 0) {
          const std::uint64_t offset = stripes.offset_of(i, extent.base);
          const std::uint64_t part = std::min(extent.bytes, stripes.place(offset).left);
          extents.push_back({offset, part});
          extent.base += part, extent.bytes -= part;
        }
      }
    }
    std::sort(extents.begin(), extents.end(), [](const Range& a, const Range& b) { return a.base < b.base; });
    if (extents.size() <= most) return extents;
  }
}

void MappedFile::find_parts() {
  using snapshot::kChecksumBlock;
  auto repeat = layout_.repeats.begin();
  const auto none = layout_.repeats.end();
  // Those up to `end`; such that follow one another, with sources that do, are one part.
  const auto take_repeats = [&](std::uint64_t end) {
    for (; repeat != none && repeat->first * kChecksumBlock < end; ++repeat) {
      const std::uint64_t at = repeat->first * kChecksumBlock, from = repeat->second * kChecksumBlock;
      if (!parts_.empty() && parts_.back().from != parts_.back().range.base) {
        Part& last = parts_.back();
        if (last.range.end() == at && last.from + last.range.bytes == from &&
            layout_.stripes.place(last.from).left > last.range.bytes) {
          last.range.bytes += kChecksumBlock;
          continue;
        }
      }
      parts_.push_back({{at, kChecksumBlock}, from});
    }
  };
  // What lies in a repeat's own place in the file means nothing.
  for (Range extent : find_extents()) {
    take_repeats(extent.base);
    while (extent.bytes != 0) {
      const std::uint64_t next = repeat == none ? extent.end() : repeat->first * kChecksumBlock;
      const std::uint64_t before = std::min(extent.end(), next) - extent.base;
      if (before != 0) parts_.push_back({{extent.base, before}, extent.base});
      const std::uint64_t skip = std::min(extent.bytes, before + (next < extent.end() ? kChecksumBlock : 0));
      extent.base += skip, extent.bytes -= skip;
      take_repeats(extent.base);
    }
  }
  take_repeats(bytes_);
}

std::vector<MappedFile::Part>::const_iterator MappedFile::part_at(std::uint64_t offset) const {
  return std::upper_bound(parts_.begin(), parts_.end(), offset,
                          [](std::uint64_t at, const Part& part) { return at < part.range.end(); });
}

bool MappedFile::is_hole(std::uint64_t offset, std::uint64_t bytes) const {
  const auto next = part_at(offset);
  return next == parts_.end() || next->range.base >= offset + bytes;
}

void MappedFile::map_private(std::uint64_t offset, std::uint64_t bytes, std::uint64_t address) const {
  for (auto part = part_at(offset); part != parts_.end() && part->range.base < offset + bytes; ++part) {
    const std::uint64_t begin = std::max(part->range.base, offset);
    const std::uint64_t end = std::min(part->range.end(), offset + bytes);
    map_part(part->from + (begin - part->range.base), end - begin,
             reinterpret_cast<void*>(address + (begin - offset)), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_NORESERVE);
  }
}

void MappedFile::read_ahead(std::uint64_t offset, std::uint64_t bytes) const {
  if (fds_.empty() || offset >= bytes_) return;
  const snapshot::Stripes::Place place = layout_.place(offset);
  ::posix_fadvise(fds_[place.file], static_cast<off_t>(place.offset), static_cast<off_t>(bytes),
                  POSIX_FADV_WILLNEED);
}

}  // namespace kerncap::replay
