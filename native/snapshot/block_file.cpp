#include "snapshot/block_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "snapshot/error.h"
#include "snapshot/xxh64.h"

namespace kerncap::snapshot {
namespace {

// Holes are made in steps of this size: small enough to find them in sparse buffers, large enough
// that a mixed block does not turn into many small writes.
constexpr std::size_t kHoleStep = 64 << 10;

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

void throw_io(const std::string& what, const std::string& path, int error_number) {
  char text[256];
  // The GNU variant returns the text, which need not be in `text`.
  const char* reason = ::strerror_r(error_number, text, sizeof text);
  throw IoError(what + " " + path + ": " + reason, error_number);
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

BlockFile::BlockFile(std::string path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd_ < 0) throw_io("cannot create", path_, errno);
}

BlockFile::~BlockFile() {
  if (fd_ >= 0) ::close(fd_);
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
  std::size_t from = 0;  // start of the run of steps to write
  bool wrote = false;
  const auto write_run = [&](std::size_t end) {
    if (end == from) return;
    write_all(fd_, path_, p + from, end - from, offset + from);
    wrote = true;
  };
  for (std::size_t at = 0; at < bytes; at += kHoleStep) {
    const std::size_t step = std::min(kHoleStep, bytes - at);
    if (!all_zero(p + at, step)) continue;
    write_run(at);
    from = at + step;
  }
  if (from < bytes) write_run(bytes);
  // The disk works while the next blocks are read: all is flushed at the end anyway. Only a hint, so
  // unchecked.
  if (wrote)
    ::sync_file_range(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
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
    const ssize_t n = ::pread(fd_, p, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_io("cannot read back", path_, errno);
    if (n == 0) {
      std::memset(p, 0, bytes);  // a hole at the end: the length is only set by finish
      return;
    }
    p += n, offset += static_cast<std::uint64_t>(n), bytes -= static_cast<std::size_t>(n);
  }
}

void BlockFile::finish() {
  flush_pending();
  if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0) throw_io("cannot set the length of", path_, errno);
  if (::fsync(fd_) != 0) throw_io("cannot flush", path_, errno);
}

}  // namespace kerncap::snapshot
