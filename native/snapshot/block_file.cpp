#include "snapshot/block_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "snapshot/error.h"
#include "snapshot/xxh64.h"

namespace kerncap::snapshot {
namespace {

// Holes are made in steps of this size: small enough to find them in sparse buffers, large enough
// that a mixed block does not turn into many small writes.
constexpr std::size_t kHoleStep = 64 << 10;
// A write to a file in memory takes one thread's time to allocate and fill pages. Measured with 16
// threads: 3.4 GB/s to one file, 12 to 15 to eight.
constexpr std::uint32_t kMostFiles = 8;
constexpr unsigned kThreadsForOne = 4;  // below that, threads are the limit, not locks

std::uint32_t files_for(int fd) {
  const char* wanted = std::getenv("KERNCAP_MEMORY_FILES");
  if (wanted != nullptr && *wanted != 0) {
    char* end = nullptr;
    const unsigned long number = std::strtoul(wanted, &end, 10);
    if (*end == 0 && number >= 1 && number <= kMaxFiles) return static_cast<std::uint32_t>(number);
  }
  struct statfs info;
  if (::fstatfs(fd, &info) != 0 || info.f_type != TMPFS_MAGIC) return 1;
  const unsigned threads = std::thread::hardware_concurrency();
  return threads < kThreadsForOne ? 1 : std::min(threads, kMostFiles);
}

void write_all(int fd, const std::string& path, const unsigned char* data, std::size_t bytes,
               std::uint64_t offset) {
  while (bytes != 0) {
    const ssize_t n = ::pwrite(fd, data, bytes, static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      throw_io("cannot write", path, errno);
    }
    if (n == 0) throw_io("cannot write", path, ENOSPC);
    data += n, offset += static_cast<std::uint64_t>(n), bytes -= static_cast<std::size_t>(n);
  }
}

}  // namespace

bool is_shortage(int error_number) {
  return error_number == ENOMEM || error_number == EMFILE || error_number == ENFILE || error_number == EAGAIN;
}

void throw_io(const std::string& what, const std::string& path, int error_number) {
  char text[256];
  // The GNU variant returns the text, which need not be in `text`.
  const char* reason = ::strerror_r(error_number, text, sizeof text);
  const char* limit = error_number == EFBIG ? " (the limit on the size of files, ulimit -f)" : "";
  throw IoError(what + " " + path + ": " + reason + limit, error_number);
}

bool all_zero(const void* data, std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  while (bytes >= 64) {
    std::uint64_t w[8];
    std::memcpy(w, p, 64);
    if ((w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7]) != 0) return false;
    p += 64, bytes -= 64;
  }
  for (; bytes != 0; ++p, --bytes) {
    if (*p != 0) return false;
  }
  return true;
}

BlockFile::BlockFile(std::string path, bool striped, std::uint32_t most_repeats)
    : path_(std::move(path)), most_repeats_(most_repeats) {
  const int first = file(0);
  if (striped) layout_.stripes.files = files_for(first);
}

BlockFile::~BlockFile() {
  for (const int fd : fds_) {
    if (fd >= 0) ::close(fd);
  }
}

int BlockFile::file(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  if (fds_.size() <= number) fds_.resize(number + 1, -1);
  if (fds_[number] < 0) {
    const std::string name = Stripes::name(path_, number);
    fds_[number] = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fds_[number] < 0) throw_io("cannot create", name, errno);
  }
  return fds_[number];
}

void BlockFile::write_block(std::uint64_t index, const void* data, std::size_t bytes, std::uint64_t hash) {
  const std::uint64_t offset = index * kChecksumBlock;
  {
    const std::lock_guard lock(mutex_);
    if (checksums_.size() <= index) checksums_.resize(index + 1);
    checksums_[index] = hash;
    size_ = std::max<std::uint64_t>(size_, offset + bytes);
  }
  const auto* p = static_cast<const unsigned char*>(data);
  const bool whole = bytes == kChecksumBlock;
  if (whole && repeat(index, p, hash)) return;
  bool zeros = true;
  std::size_t from = 0;  // start of the run of steps to write
  for (std::size_t at = 0; at < bytes; at += kHoleStep) {
    const std::size_t step = std::min(kHoleStep, bytes - at);
    if (!all_zero(p + at, step)) {
      zeros = false;
      continue;
    }
    write_run(p + from, at - from, offset + from);
    from = at + step;
  }
  write_run(p + from, bytes - std::min(from, bytes), offset + from);
  if (!whole || zeros || most_repeats_ == 0) return;
  const std::lock_guard lock(mutex_);  // only now can it be read back
  written_.try_emplace(hash, index);
}

bool BlockFile::is_same(std::uint64_t source, const unsigned char* data) const {
  unsigned char piece[kHoleStep];
  for (std::uint64_t at = 0; at < kChecksumBlock; at += sizeof piece) {
    read_back(source * kChecksumBlock + at, piece, sizeof piece);
    if (std::memcmp(piece, data + at, sizeof piece) != 0) return false;
  }
  return true;
}

bool BlockFile::repeat(std::uint64_t index, const unsigned char* data, std::uint64_t hash) {
  std::uint64_t source = 0;
  {
    const std::lock_guard lock(mutex_);
    if (layout_.repeats.size() >= most_repeats_) return false;
    const auto found = written_.find(hash);
    if (found == written_.end()) return false;
    source = found->second;
  }
  if (!is_same(source, data)) return false;  // different bytes may have one hash
  const std::lock_guard lock(mutex_);
  if (layout_.repeats.size() >= most_repeats_) return false;
  layout_.repeats[index] = source;
  return true;
}

// Within one block, which lies in one file.
void BlockFile::write_run(const unsigned char* data, std::size_t bytes, std::uint64_t offset) {
  if (bytes == 0) return;
  const Stripes::Place place = layout_.stripes.place(offset);
  const int fd = file(place.file);
  write_all(fd, Stripes::name(path_, place.file), data, bytes, place.offset);
  // The disk works while the next blocks are read: all is flushed at the end anyway. Only a hint, so
  // unchecked.
  ::sync_file_range(fd, static_cast<off_t>(place.offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
}

void BlockFile::append(const void* data, std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  while (bytes != 0) {
    const std::size_t take = std::min<std::size_t>(bytes, kChecksumBlock - pending_.size());
    pending_.insert(pending_.end(), p, p + take);
    p += take, bytes -= take, size_ += take;
    if (pending_.size() == kChecksumBlock) flush_pending();
  }
}

void BlockFile::flush_pending() {
  if (pending_.empty()) return;
  write_block(checksums_.size(), pending_.data(), pending_.size(), xxh64(pending_.data(), pending_.size()));
  pending_.clear();
}

void BlockFile::read_back(std::uint64_t offset, void* out, std::size_t bytes) const {
  auto* p = static_cast<unsigned char*>(out);
  while (bytes != 0) {
    Stripes::Place place{};
    int fd = -1;
    {
      const std::lock_guard lock(mutex_);
      place = layout_.place(offset);
      if (place.file < fds_.size()) fd = fds_[place.file];
    }
    const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, place.left));
    const ssize_t n = fd < 0 ? 0 : ::pread(fd, p, part, static_cast<off_t>(place.offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_io("cannot read back", Stripes::name(path_, place.file), errno);
    // A hole at the end of the file: its length is only set by finish.
    const std::size_t got = n == 0 ? part : static_cast<std::size_t>(n);
    if (n == 0) std::memset(p, 0, part);
    p += got, offset += got, bytes -= got;
  }
}

void BlockFile::finish() {
  flush_pending();
  for (std::uint32_t i = 0; i < files_used(); ++i) {
    const int fd = file(i);  // one of zeros alone was never written to
    const std::string name = Stripes::name(path_, i);
    if (::ftruncate(fd, static_cast<off_t>(layout_.stripes.length(i, size_))) != 0)
      throw_io("cannot set the length of", name, errno);
    if (::fsync(fd) != 0) throw_io("cannot flush", name, errno);
  }
}

}  // namespace kerncap::snapshot
