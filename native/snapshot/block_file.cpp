#include "snapshot/block_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
// What is mapped at once, where blocks are copied into mappings.
constexpr std::uint64_t kWindowBlocks = 64;
constexpr std::uint64_t kWindowBytes = kWindowBlocks * kChecksumBlock;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE (Linux 5.14)
// Filling pages of a mapping costs more than write(2) does, and pays where many threads do it.
constexpr unsigned kManyThreads = 8;

bool mapping_pays(int fd) {
  struct statfs info;
  if (::fstatfs(fd, &info) != 0 || info.f_type != TMPFS_MAGIC) return false;
  // A file is longer than its content while it is mapped: the program's limit is for the content.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return false;
  const char* wanted = std::getenv("KERNCAP_MAPPED_WRITES");
  if (wanted != nullptr && *wanted != 0) return std::strcmp(wanted, "0") != 0;
  return std::thread::hardware_concurrency() >= kManyThreads;
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

// A file in memory (tmpfs) takes one write(2) at a time, by its lock; pages of a mapping are filled side by
// side.
class BlockFile::Window {
 public:
  Window(int fd, std::uint64_t offset) : offset_(offset) {
    void* const at =
        ::mmap(nullptr, kWindowBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (at == MAP_FAILED) return;
    data_ = static_cast<unsigned char*>(at);
    ::madvise(at, kWindowBytes, MADV_DONTFORK);
  }
  ~Window() {
    if (data_ != nullptr) ::munmap(data_, kWindowBytes);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // False: nothing was copied. Pages are allocated first, by a call that fails where there is no room for
  // them: to touch them would end the program by SIGBUS.
  bool copy(std::uint64_t offset, const unsigned char* data, std::size_t bytes) {
    if (data_ == nullptr) return false;
    unsigned char* const to = data_ + (offset - offset_);
    const std::uintptr_t page = 4095;
    const auto begin = reinterpret_cast<std::uintptr_t>(to) & ~page;
    const auto end = (reinterpret_cast<std::uintptr_t>(to) + bytes + page) & ~page;
    if (::madvise(reinterpret_cast<void*>(begin), end - begin, kPopulateWrite) != 0) return false;
    std::memcpy(to, data, bytes);
    return true;
  }

 private:
  unsigned char* data_ = nullptr;
  std::uint64_t offset_;
};

BlockFile::BlockFile(std::string path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd_ < 0) throw_io("cannot create", path_, errno);
  mapped_.store(mapping_pays(fd_), std::memory_order_relaxed);
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
  const bool mapped = mapped_.load(std::memory_order_relaxed);
  std::shared_ptr<Window> window;
  const auto write_run = [&](std::size_t end) {
    if (end == from) return;
    if (mapped && window == nullptr) window = window_of(index);
    this->write_run(window.get(), p + from, end - from, offset + from);
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
  if (wrote && !mapped)
    ::sync_file_range(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
  if (mapped) block_done(index);
}

void BlockFile::write_run(Window* window, const unsigned char* data, std::size_t bytes,
                          std::uint64_t offset) {
  if (window != nullptr) {
    if (window->copy(offset, data, bytes)) return;
    mapped_.store(false, std::memory_order_relaxed);  // an older kernel, or no room: then this tells
  }
  write_all(fd_, path_, data, bytes, offset);
}

// The window that a block lies in; null where the file cannot be made as long as that.
std::shared_ptr<BlockFile::Window> BlockFile::window_of(std::uint64_t index) {
  const std::uint64_t number = index / kWindowBlocks, offset = number * kWindowBytes;
  const std::lock_guard lock(mutex_);
  if (length_ < offset + kWindowBytes) {
    if (::ftruncate(fd_, static_cast<off_t>(offset + kWindowBytes)) != 0) return nullptr;
    length_ = offset + kWindowBytes;
  }
  Filling& filling = windows_[number];
  if (filling.window == nullptr) filling.window = std::make_shared<Window>(fd_, offset);
  return filling.window;
}

// A window is given up with its last block. Those that never get there go with the file.
void BlockFile::block_done(std::uint64_t index) {
  std::shared_ptr<Window> last;  // unmapped without the lock
  const std::lock_guard lock(mutex_);
  Filling& filling = windows_[index / kWindowBlocks];
  if (++filling.blocks < kWindowBlocks) return;
  last = std::move(filling.window);
  windows_.erase(index / kWindowBlocks);
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
  windows_.clear();
  if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0) throw_io("cannot set the length of", path_, errno);
  if (::fsync(fd_) != 0) throw_io("cannot flush", path_, errno);
}

}  // namespace kerncap::snapshot
