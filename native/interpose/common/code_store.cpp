#include "interpose/common/code_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "interpose/common/names.h"
#include "live/file_size_guard.h"
#include "snapshot/xxh64.h"

namespace kerncap::interpose {
namespace {

// The file and offset behind [data, data + bytes), if it is one mapping of a file that is not written
// through.
bool backing_file(const void* data, std::size_t bytes, std::string& path, std::uint64_t& offset) {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return false;
  const auto address = reinterpret_cast<std::uint64_t>(data);
  char* line = nullptr;
  std::size_t capacity = 0;
  bool found = false;
  while (!found && ::getline(&line, &capacity, maps) > 0) {
    std::uint64_t begin = 0, end = 0, file_offset = 0;
    char access[8] = {};
    int name_at = 0;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &begin, &end, access,
                    &file_offset, &name_at) < 4 ||
        address < begin || address >= end) {
      continue;
    }
    if (bytes > end - address || access[1] == 'w' || line[name_at] != '/') break;
    path.assign(line + name_at);
    if (path.ends_with('\n')) path.pop_back();
    if (path.ends_with(" (deleted)")) break;
    offset = file_offset + (address - begin);
    found = true;
  }
  std::free(line);
  std::fclose(maps);
  return found;
}

bool read_exactly(int fd, unsigned char* out, std::size_t bytes, std::uint64_t offset) {
  while (bytes != 0) {
    const ssize_t n = ::pread(fd, out, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    out += n, offset += static_cast<std::uint64_t>(n), bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

CodeStore::~CodeStore() {
  if (spill_fd_ >= 0) ::close(spill_fd_);
}

std::uint64_t CodeStore::add(const void* data, std::size_t bytes) {
  const std::uint64_t hash = snapshot::xxh64(data, bytes);
  const std::lock_guard lock(mutex_);
  if (places_.contains(hash)) return hash;
  Place place;
  place.bytes = bytes;
  if (!backing_file(data, bytes, place.path, place.offset)) {
    place.path.clear();
    if (!spill(data, bytes, place)) {
      const auto* p = static_cast<const unsigned char*>(data);
      place.memory.assign(p, p + bytes);
    }
  }
  places_.emplace(hash, std::move(place));
  return hash;
}

bool CodeStore::spill(const void* data, std::size_t bytes, Place& place) {
  if (spill_fd_ < 0) spill_fd_ = ::open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (spill_fd_ < 0) {
    std::string name = directory_ + "/code-XXXXXX";
    spill_fd_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (spill_fd_ < 0) return false;
    ::unlink(name.c_str());
  }
  const live::FileSizeGuard guard;
  const auto* p = static_cast<const unsigned char*>(data);
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = ::pwrite(spill_fd_, p + done, bytes - done, static_cast<off_t>(spill_bytes_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  place.offset = spill_bytes_;
  spill_bytes_ += bytes;
  return true;
}

bool CodeStore::read(std::uint64_t hash, std::vector<unsigned char>& out, std::string* error) const {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(hash);
  if (found == places_.end()) {
    *error = "code object " + id_text(hash) + " was never seen";
    return false;
  }
  const Place& place = found->second;
  if (!place.memory.empty()) {
    out = place.memory;
    return true;
  }
  out.resize(place.bytes);
  int fd = spill_fd_;
  if (!place.path.empty()) fd = ::open(place.path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool whole = fd >= 0 && read_exactly(fd, out.data(), out.size(), place.offset);
  if (!place.path.empty() && fd >= 0) ::close(fd);
  if (whole && snapshot::xxh64(out.data(), out.size()) == hash) return true;
  *error = "the code object at offset " + std::to_string(place.offset) + " of " +
           (place.path.empty() ? directory_ + " (spill file)" : place.path) + " changed after it was loaded";
  return false;
}

}  // namespace kerncap::interpose
