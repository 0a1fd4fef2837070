#include "snapshot/capture_writer.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "snapshot/error.h"
#include "snapshot/xxh64.h"

namespace kerncap::snapshot {
namespace {

constexpr std::size_t kSumsPerRecord = 1 << 20;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

void make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0) throw_io("cannot create", path, errno);
}

void write_file(const std::string& path, std::initializer_list<std::pair<const void*, std::size_t>> parts) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0) throw_io("cannot create", path, errno);
  for (const auto& [data, size] : parts) {
    const auto* p = static_cast<const char*>(data);
    for (std::size_t left = size; left != 0;) {
      const ssize_t n = ::write(fd.get(), p, left);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) throw_io("cannot write", path, n < 0 ? errno : ENOSPC);
      p += n, left -= static_cast<std::size_t>(n);
    }
  }
  if (::fsync(fd.get()) != 0) throw_io("cannot flush", path, errno);
}

void sync_directory(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) throw_io("cannot open", path, errno);
  // Some filesystems cannot flush a directory; then the rename is as durable as they make it.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) throw_io("cannot flush", path, errno);
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

std::string partial_path(const std::string& output, unsigned pid) {
  return output + ".partial-" + std::to_string(pid);
}

CaptureWriter::CaptureWriter(std::string output) : output_(std::move(output)) {
  while (output_.size() > 1 && output_.back() == '/') output_.pop_back();
  struct stat existing;
  if (::lstat(output_.c_str(), &existing) == 0) throw_io("cannot create", output_, EEXIST);
  partial_ = partial_path(output_, static_cast<unsigned>(::getpid()));
  make_directory(partial_);
  try {
    make_directory(partial_ + "/code");
    pre_ = std::make_unique<BlockFile>(partial_ + "/memory.pre", true, kMostRepeats);
    post_ = std::make_unique<BlockFile>(partial_ + "/memory.post", false, kMostRepeats);
  } catch (...) {
    discard();
    throw;
  }
}

CaptureWriter::~CaptureWriter() {
  if (!committed_) discard();
}

void CaptureWriter::discard() {
  // It takes a descriptor to remove a folder's files, and the process may have none left but ours.
  pre_.reset(), post_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(partial_ + "/code", ignored);
  std::filesystem::remove_all(partial_, ignored);
}

void CaptureWriter::append(const void* fixed, std::size_t bytes,
                           std::initializer_list<std::string_view> strings) {
  const std::size_t start = records_.size();
  const auto* p = static_cast<const unsigned char*>(fixed);
  records_.insert(records_.end(), p, p + bytes);
  for (const std::string_view s : strings) records_.insert(records_.end(), s.begin(), s.end());
  records_.resize((records_.size() + 7) / 8 * 8);
  const auto length = static_cast<std::uint32_t>(records_.size() - start);
  std::memcpy(records_.data() + start + offsetof(RecordHeader, bytes), &length, sizeof length);
  ++record_count_;
}

void CaptureWriter::add_code_object(std::uint64_t hash, const void* data, std::size_t bytes) {
  if (!code_hashes_.insert(hash).second) return;
  char name[40];
  std::snprintf(name, sizeof name, "/code/%016llx.hsaco", static_cast<unsigned long long>(hash));
  write_file(partial_ + name, {{data, bytes}});
}

void CaptureWriter::add_checksums(std::uint32_t file, const std::vector<std::uint64_t>& sums) {
  for (std::size_t first = 0; first < sums.size(); first += kSumsPerRecord) {
    const std::size_t count = std::min(kSumsPerRecord, sums.size() - first);
    ChecksumsRecord record{};
    record.file = file;
    record.count = static_cast<std::uint32_t>(count);
    record.first_block = first;
    add(record, RecordType::checksums,
        {{reinterpret_cast<const char*>(sums.data() + first), count * sizeof(std::uint64_t)}});
  }
}

void CaptureWriter::add_repeats(std::uint32_t file, const Repeats& repeats) {
  if (repeats.empty()) return;
  std::vector<BlockRepeat> list;
  list.reserve(repeats.size());
  for (const auto& [block, source] : repeats) list.push_back({block, source});
  RepeatsRecord record{};
  record.file = file;
  record.count = static_cast<std::uint32_t>(list.size());
  add(record, RecordType::repeats,
      {{reinterpret_cast<const char*>(list.data()), list.size() * sizeof(BlockRepeat)}});
}

void CaptureWriter::write_records() {
  FileHeader header{};
  std::memcpy(header.magic, kMagic, sizeof header.magic);
  header.version = kVersion;
  header.header_bytes = sizeof header;
  header.file_bytes = sizeof header + records_.size();
  header.pre_bytes = pre_->size();
  header.post_bytes = post_->size();
  header.record_count = record_count_;
  header.pre_files = pre_->files_used();
  header.checksum = xxh64(records_.data(), records_.size());
  write_file(partial_ + "/capture.bin", {{&header, sizeof header}, {records_.data(), records_.size()}});
}

void CaptureWriter::commit() {
  pre_->finish();
  post_->finish();
  add_checksums(0, pre_->checksums());
  add_checksums(1, post_->checksums());
  add_repeats(0, pre_->repeats());
  add_repeats(1, post_->repeats());
  add(EndRecord{}, RecordType::end);
  write_records();
  sync_directory(partial_ + "/code");
  sync_directory(partial_);
  if (::renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, output_.c_str(), RENAME_NOREPLACE) != 0) {
    // A filesystem without RENAME_NOREPLACE: a plain rename still fails on a directory that is not empty.
    struct stat existing;
    if ((errno != EINVAL && errno != ENOSYS) || ::lstat(output_.c_str(), &existing) == 0 ||
        ::rename(partial_.c_str(), output_.c_str()) != 0) {
      throw_io("cannot rename " + partial_ + " to", output_, errno);
    }
  }
  committed_ = true;
  sync_directory(parent_of(output_));
}

}  // namespace kerncap::snapshot
