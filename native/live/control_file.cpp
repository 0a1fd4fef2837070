#include "live/control_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kerncap::live {

std::unique_ptr<ControlFile> ControlFile::open(const std::string& session, std::string* error) {
  const std::string path = session + "/control";
  const auto fail = [&](const std::string& why) -> std::unique_ptr<ControlFile> {
    *error = path + ": " + why;
    return nullptr;
  };
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return fail(std::strerror(errno));
  struct stat info;
  if (::fstat(fd, &info) != 0 || info.st_size < static_cast<off_t>(sizeof(Control))) {
    ::close(fd);
    return fail("too short for a control block");
  }
  void* map = ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int map_error = errno;
  ::close(fd);
  if (map == MAP_FAILED) return fail(std::strerror(map_error));
  std::unique_ptr<ControlFile> file(new ControlFile(static_cast<Control*>(map)));
  const Control& block = file->block();
  if (std::memcmp(block.magic, kControlMagic, sizeof kControlMagic) != 0) return fail("not a control block");
  if (block.version != kVersion || block.bytes != sizeof(Control)) {
    return fail("a control block of version " + std::to_string(block.version) +
                ", this interposer knows version " + std::to_string(kVersion));
  }
  return file;
}

ControlFile::~ControlFile() { ::munmap(block_, sizeof(Control)); }

void set_text(char* field, std::size_t field_bytes, const std::string& text) {
  std::size_t length = std::min(text.size(), field_bytes - 1);
  while (length < text.size() && length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80)
    --length;
  std::memcpy(field, text.data(), length);
  std::memset(field + length, 0, field_bytes - length);
}

}  // namespace kerncap::live
