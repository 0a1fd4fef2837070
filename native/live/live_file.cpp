#include "live/live_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "live/control_file.h"
#include "live/file_size_guard.h"

namespace kerncap::live {
namespace {

constexpr std::uint64_t kRowsChunk = 256 * std::uint64_t{kRowBytes};
constexpr std::uint64_t kNamesChunk = 256 << 10;
constexpr std::uint64_t kLeastNameBytes = 1 << 20;

// How many bytes names may have. Where the address space is limited (ulimit -v), a small part of it: the rest
// is the program's.
std::uint64_t name_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMaxNameBytes;
  return std::clamp(limit.rlim_cur / 64 / kNamesChunk * kNamesChunk, kLeastNameBytes, kMaxNameBytes);
}

std::uint64_t clock_ns(clockid_t clock) {
  timespec t;
  ::clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

// Field 22 of /proc/self/stat: the start of the process in clock ticks. The name before it may hold anything.
std::string process_start() {
  char text[4096];
  const int fd = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "0";
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (n <= 0) return "0";
  text[n] = 0;
  const char* p = std::strrchr(text, ')');
  for (int field = 2; p != nullptr && field < 22; ++field) {
    p = std::strchr(p, ' ');
    if (p != nullptr) ++p;
  }
  if (p == nullptr) return "0";
  return std::string(p, std::strspn(p, "0123456789"));
}

std::string executable_path() {
  char path[1024];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : std::string();
}

}  // namespace

std::uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
std::uint64_t coarse_monotonic_ns() { return clock_ns(CLOCK_MONOTONIC_COARSE); }

std::unique_ptr<LiveFile> LiveFile::create(const std::string& session, std::string* warning,
                                           Control* control) {
  std::unique_ptr<LiveFile> file(new LiveFile);
  const std::string stem = session + "/" + std::to_string(::getpid()) + "-" + process_start();
  for (int n = 1; n < 1000; ++n) {
    file->path_ = stem;
    if (n > 1) file->path_.append(".").append(std::to_string(n));
    file->path_.append(".live");
    file->fd_ = ::open(file->path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file->fd_ >= 0 || errno != EEXIST) break;
  }
  int error = 0;
  if (file->fd_ < 0) {
    error = errno;
    *warning = "cannot create " + file->path_ + ": " + std::strerror(error);
  } else if ((error = file->map(warning)) != 0) {
    ::close(file->fd_);
    ::unlink(file->path_.c_str());
    file->fd_ = -1;
  }
  if (error != 0 && control != nullptr) {
    control->unwatched_error.store(static_cast<std::uint32_t>(error), std::memory_order_relaxed);
    control->unwatched.fetch_add(1, std::memory_order_release);
  }
  if (error != 0 && file->map(warning) != 0) return nullptr;
  if (error != 0) file->path_.clear();
  LiveHeader& header = *file->header_;
  header.version = kVersion;
  header.row_bytes = kRowBytes;
  header.max_rows = kMaxRows;
  header.pid = static_cast<std::uint32_t>(::getpid());
  header.parent_pid = static_cast<std::uint32_t>(::getppid());
  header.start_realtime_ns = clock_ns(CLOCK_REALTIME);
  header.start_monotonic_ns = monotonic_ns();
  set_text(header.executable, sizeof header.executable, executable_path());
  file->row(0).min_ns.store(UINT64_MAX, std::memory_order_relaxed);
  // The magic last: a reader that finds it finds a whole header.
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(header.magic, kLiveMagic, sizeof header.magic);
  return file;
}

int LiveFile::map(std::string* warning) {
  const bool in_file = fd_ >= 0;
  map_bytes_ = kNamesOffset + name_limit();
  rows_backed_ = names_backed_ = 0;
  if (in_file) {
    const FileSizeGuard guard;
    int error = ::posix_fallocate(fd_, 0, static_cast<off_t>(kRowsOffset));
    if (error == 0) error = back(kRowsOffset, rows_backed_, kRowBytes, kRowsChunk, kNamesOffset);
    if (error == 0) error = back(kNamesOffset, names_backed_, 1, kNamesChunk, map_bytes_);
    if (error != 0) {
      *warning = "no room for " + path_ + ": " + std::strerror(error);
      if (error == EFBIG) *warning += " (the limit on the size of files, ulimit -f)";
      return error;
    }
  }
  void* map =
      ::mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE,
             in_file ? MAP_SHARED | MAP_NORESERVE : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, fd_, 0);
  if (map == MAP_FAILED) {
    const int error = errno;
    *warning = "cannot map " + path_ + ": " + std::strerror(error);
    if (error == ENOMEM) *warning += " (the limit on memory, ulimit -v)";
    return error;
  }
  // A child that is forked must not write into its parent's statistics.
  ::madvise(map, map_bytes_, MADV_DONTFORK);
  map_ = static_cast<char*>(map);
  header_ = reinterpret_cast<LiveHeader*>(map_);
  return 0;
}

LiveFile::~LiveFile() {
  if (map_ != nullptr) ::munmap(map_, map_bytes_);
  if (fd_ >= 0) ::close(fd_);
}

int LiveFile::back(std::uint64_t start, std::uint64_t& backed, std::uint64_t end, std::uint64_t chunk,
                   std::uint64_t limit) {
  if (end <= backed) return 0;
  if (start + end > limit) return ENOSPC;
  if (fd_ < 0) return 0;
  const FileSizeGuard guard;
  const std::uint64_t wanted = std::min((end + chunk - 1) / chunk * chunk, limit - start);
  const int error =
      ::posix_fallocate(fd_, static_cast<off_t>(start + backed), static_cast<off_t>(wanted - backed));
  if (error == 0) backed = wanted;
  return error;
}

void LiveFile::reserve_ahead() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t rows = (std::uint64_t{row_count_} + 1) * kRowBytes;
  back(kRowsOffset, rows_backed_, std::min(rows + kRowsChunk / 2, kNamesOffset - kRowsOffset), kRowsChunk,
       kNamesOffset);
  back(kNamesOffset, names_backed_, std::min(name_bytes_ + kNamesChunk / 2, map_bytes_ - kNamesOffset),
       kNamesChunk, map_bytes_);
}

std::uint32_t LiveFile::add_row(const NewRow& values) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t index = row_count_ + 1;
  const std::uint64_t name_end = name_bytes_ + values.name.size() + values.demangled.size();
  if (index >= kMaxRows) return 0;
  if (back(kRowsOffset, rows_backed_, (std::uint64_t{index} + 1) * kRowBytes, kRowsChunk, kNamesOffset) != 0)
    return 0;
  if (back(kNamesOffset, names_backed_, name_end, kNamesChunk, map_bytes_) != 0) return 0;
  char* names = map_ + kNamesOffset;
  Row& row = this->row(index);
  row.id = values.id;
  row.name_offset = name_bytes_;
  row.name_length = static_cast<std::uint32_t>(values.name.size());
  std::copy(values.name.begin(), values.name.end(), names + row.name_offset);
  row.demangled_offset = name_bytes_ + values.name.size();
  row.demangled_length = static_cast<std::uint32_t>(values.demangled.size());
  std::copy(values.demangled.begin(), values.demangled.end(), names + row.demangled_offset);
  row.kind = values.kind;
  row.device = values.device;
  row.code_hash = values.code_hash;
  row.vgprs = values.vgprs;
  row.sgprs = values.sgprs;
  row.lds_bytes = values.lds_bytes;
  row.scratch_bytes = values.scratch_bytes;
  row.min_ns.store(UINT64_MAX, std::memory_order_relaxed);
  name_bytes_ = name_end;
  header_->name_bytes.store(name_bytes_, std::memory_order_release);
  row_count_ = index;
  header_->row_count.store(row_count_, std::memory_order_release);
  return index;
}

void count_time(Row& row, std::uint64_t ns, std::uint64_t nth) {
  constexpr auto relaxed = std::memory_order_relaxed;
  row.total_ns.fetch_add(ns, relaxed);
  row.last_ns.store(ns, relaxed);
  std::uint64_t seen = row.min_ns.load(relaxed);
  while (ns < seen && !row.min_ns.compare_exchange_weak(seen, ns, relaxed)) {
  }
  seen = row.max_ns.load(relaxed);
  while (ns > seen) {
    if (!row.max_ns.compare_exchange_weak(seen, ns, relaxed)) continue;
    row.slowest.store(nth <= UINT32_MAX ? static_cast<std::uint32_t>(nth) : 0, relaxed);
    break;
  }
  row.histogram[std::bit_width(ns) - 1].fetch_add(1, relaxed);
  row.timed.fetch_add(1, std::memory_order_release);
}

}  // namespace kerncap::live
