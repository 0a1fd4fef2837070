#include "snapshot/capture_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "snapshot/error.h"
#include "snapshot/xxh64.h"

namespace kerncap::snapshot {
namespace {

void read_at(int fd, const std::string& path, void* out, std::size_t bytes, std::uint64_t offset) {
  auto* p = static_cast<unsigned char*>(out);
  while (bytes != 0) {
    const ssize_t n = ::pread(fd, p, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_io("cannot read", path, errno);
    if (n == 0) throw DamagedCapture(path + " ends at offset " + std::to_string(offset) + ", too early");
    p += n, offset += static_cast<std::uint64_t>(n), bytes -= static_cast<std::size_t>(n);
  }
}

int open_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) return fd;
  if (errno == ENOENT) throw DamagedCapture(path + " is missing");
  throw_io("cannot open", path, errno);
}

std::uint64_t length_of(int fd, const std::string& path) {
  struct stat info;
  if (::fstat(fd, &info) != 0) throw_io("cannot examine", path, errno);
  return static_cast<std::uint64_t>(info.st_size);
}

std::vector<unsigned char> read_file(const std::string& path) {
  const int fd = open_file(path);
  std::vector<unsigned char> bytes;
  try {
    bytes.resize(length_of(fd, path));
    read_at(fd, path, bytes.data(), bytes.size(), 0);
  } catch (...) {
    ::close(fd);
    throw;
  }
  ::close(fd);
  return bytes;
}

template <typename Record>
Record fixed_part(const unsigned char* p) {
  Record record;
  std::memcpy(&record, p, sizeof record);
  return record;
}

}  // namespace

void CaptureReader::damaged(std::uint64_t offset, const std::string& why) const {
  throw DamagedCapture(records_path_ + " at offset " + std::to_string(offset) + ": " + why);
}

CaptureReader::CaptureReader(std::string directory)
    : directory_(std::move(directory)), records_path_(directory_ + "/capture.bin") {
  const std::vector<unsigned char> bytes = read_file(records_path_);
  if (bytes.size() < sizeof(FileHeader))
    damaged(0, "only " + std::to_string(bytes.size()) + " bytes, no header");
  const auto header = fixed_part<FileHeader>(bytes.data());
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) damaged(0, "not a capture (wrong magic)");
  if (header.version != kVersion) {
    damaged(offsetof(FileHeader, version), "version " + std::to_string(header.version) +
                                               "; this kerncap reads version " + std::to_string(kVersion) +
                                               "; capture again, or use the kerncap that wrote it");
  }
  if (header.header_bytes != sizeof(FileHeader))
    damaged(offsetof(FileHeader, header_bytes), "wrong header length");
  if (header.file_bytes != bytes.size()) {
    damaged(bytes.size(), "the file has " + std::to_string(bytes.size()) + " bytes, its header says " +
                              std::to_string(header.file_bytes));
  }
  if (xxh64(bytes.data() + sizeof header, bytes.size() - sizeof header) != header.checksum) {
    damaged(sizeof header, "the records do not match their checksum");
  }
  if (header.pre_files > Stripes{kMaxFiles}.used(header.pre_bytes)) {
    damaged(offsetof(FileHeader, pre_files), "memory.pre of " + std::to_string(header.pre_bytes) +
                                                 " bytes in " + std::to_string(header.pre_files) + " files");
  }
  pre_bytes = header.pre_bytes;
  memory_[0].layout.stripes.files = std::max(header.pre_files, 1u);
  post_bytes = header.post_bytes;
  try {
    open_memory(MemoryFile::pre, "/memory.pre");
    open_memory(MemoryFile::post, "/memory.post");
    read_records(bytes);
    check_references();
    check_repeats();
  } catch (...) {
    close_memory();
    throw;
  }
}

CaptureReader::~CaptureReader() { close_memory(); }

void CaptureReader::close_memory() {
  for (const Memory& m : memory_) {
    for (const int fd : m.fds) ::close(fd);
  }
}

void CaptureReader::open_memory(MemoryFile file, const char* name) {
  Memory& m = memory_[static_cast<unsigned>(file)];
  m.path = directory_ + name;
  m.bytes = file == MemoryFile::pre ? pre_bytes : post_bytes;
  for (std::uint32_t i = 0; i < m.layout.stripes.files; ++i) {
    const std::string path = Stripes::name(m.path, i);
    m.fds.push_back(open_file(path));
    const std::uint64_t length = length_of(m.fds.back(), path), wanted = m.layout.stripes.length(i, m.bytes);
    if (length != wanted) {
      throw DamagedCapture(path + " has " + std::to_string(length) + " bytes, capture.bin says " +
                           std::to_string(wanted));
    }
  }
  const std::uint64_t blocks = (m.bytes + kChecksumBlock - 1) / kChecksumBlock;
  m.sums.resize(blocks);
  m.known.resize(blocks);
}

void CaptureReader::read_records(const std::vector<unsigned char>& bytes) {
  const auto header = fixed_part<FileHeader>(bytes.data());
  std::uint64_t offset = sizeof(FileHeader);
  std::uint64_t count = 0;
  while (offset < bytes.size()) {
    if (bytes.size() - offset < sizeof(RecordHeader)) damaged(offset, "a record is cut short");
    const auto record = fixed_part<RecordHeader>(bytes.data() + offset);
    if (record.bytes < sizeof(RecordHeader) || record.bytes % 8 != 0 ||
        record.bytes > bytes.size() - offset) {
      damaged(offset, "a record of " + std::to_string(record.bytes) + " bytes");
    }
    read_record(record, bytes.data() + offset, offset);
    offset += record.bytes;
    ++count;
  }
  if (count != header.record_count) {
    damaged(offset,
            std::to_string(count) + " records, the header says " + std::to_string(header.record_count));
  }
}

void CaptureReader::read_record(const RecordHeader& header, const unsigned char* p, std::uint64_t offset) {
  // The fixed part into `to`, then strings of the given lengths.
  const auto take = [&]<typename Record>(Record& to) {
    if (header.bytes < sizeof(Record)) damaged(offset, "a record that is too short for its type");
    to = fixed_part<Record>(p);
    return sizeof(Record);
  };
  const auto string = [&](std::size_t& at, std::uint64_t length) {
    if (length > header.bytes - at) damaged(offset, "a string that is longer than its record");
    std::string s(reinterpret_cast<const char*>(p) + at, length);
    at += length;
    return s;
  };
  if (static_cast<unsigned>(header.type) < 32) seen_ |= 1u << static_cast<unsigned>(header.type);
  switch (header.type) {
    case RecordType::process: {
      std::size_t at = take(process);
      executable = string(at, process.executable_length);
      working_directory = string(at, process.directory_length);
      runtime = string(at, process.runtime_length);
      return;
    }
    case RecordType::device: {
      std::size_t at = take(device);
      isa = string(at, device.isa_length);
      agent_name = string(at, device.name_length);
      product = string(at, device.product_length);
      return;
    }
    case RecordType::dispatch: {
      std::size_t at = take(dispatch);
      symbol = string(at, dispatch.symbol_length);
      demangled = string(at, dispatch.demangled_length);
      return;
    }
    case RecordType::kernarg: {
      std::size_t at = take(kernarg);
      const std::string s = string(at, kernarg.length);
      kernarg_bytes.assign(s.begin(), s.end());
      return;
    }
    case RecordType::code_object: {
      CodeObject object;
      std::size_t at = take(object.record);
      object.uri = string(at, object.record.uri_length);
      char name[40];
      std::snprintf(name, sizeof name, "/code/%016llx.hsaco",
                    static_cast<unsigned long long>(object.record.content_hash));
      object.file = directory_ + name;
      code_objects.push_back(std::move(object));
      return;
    }
    case RecordType::variable: {
      Variable variable;
      std::size_t at = take(variable.record);
      variable.name = string(at, variable.record.name_length);
      variables.push_back(std::move(variable));
      return;
    }
    case RecordType::region: {
      Region region;
      std::size_t at = take(region.record);
      region.reason = string(at, region.record.reason_length);
      const RegionRecord& r = region.record;
      if (r.address + r.bytes < r.address) damaged(offset, "a region that wraps around");
      if ((r.flags & kSaved) != 0 && (r.bytes > pre_bytes || r.pre_offset > pre_bytes - r.bytes)) {
        damaged(offset, "a region whose bytes lie outside memory.pre");
      }
      regions.push_back(std::move(region));
      return;
    }
    case RecordType::change: {
      ChangeRecord change;
      take(change);
      if (change.bytes > post_bytes || change.post_offset > post_bytes - change.bytes) {
        damaged(offset, "a change whose bytes lie outside memory.post");
      }
      changes.push_back(change);
      return;
    }
    case RecordType::cuda_launch: {
      CudaLaunch launch;
      std::size_t at = take(launch.record);
      const auto list = [&]<typename Item>(std::vector<Item>& to, std::uint32_t count) {
        if (count > (header.bytes - at) / sizeof(Item)) damaged(offset, "a list longer than its record");
        to.resize(count);
        std::memcpy(to.data(), p + at, count * sizeof(Item));
        at += count * sizeof(Item);
      };
      list(launch.parameters, launch.record.parameter_count);
      list(launch.attributes, launch.record.attribute_count);
      cuda_launch = std::move(launch);
      return;
    }
    case RecordType::checksums: {
      read_checksums(p, offset);
      return;
    }
    case RecordType::repeats: {
      read_repeats(p, offset);
      return;
    }
    case RecordType::end:
      return;
  }
  damaged(offset, "a record of unknown type " + std::to_string(static_cast<unsigned>(header.type)));
}

void CaptureReader::read_checksums(const unsigned char* p, std::uint64_t offset) {
  const auto header = fixed_part<RecordHeader>(p);
  if (header.bytes < sizeof(ChecksumsRecord)) damaged(offset, "a checksums record that is too short");
  const auto record = fixed_part<ChecksumsRecord>(p);
  if (record.file > 1) damaged(offset, "checksums of an unknown file");
  Memory& m = memory_[record.file];
  if (std::uint64_t{record.count} * 8 > header.bytes - sizeof record || record.first_block > m.sums.size() ||
      record.count > m.sums.size() - record.first_block) {
    damaged(offset, "more checksums than blocks");
  }
  std::memcpy(m.sums.data() + record.first_block, p + sizeof record, std::size_t{record.count} * 8);
  std::fill_n(m.known.begin() + static_cast<std::ptrdiff_t>(record.first_block), record.count, true);
}

void CaptureReader::read_repeats(const unsigned char* p, std::uint64_t offset) {
  const auto header = fixed_part<RecordHeader>(p);
  if (header.bytes < sizeof(RepeatsRecord)) damaged(offset, "a repeats record that is too short");
  const auto record = fixed_part<RepeatsRecord>(p);
  if (record.file > 1) damaged(offset, "repeats of an unknown file");
  if (record.count > (header.bytes - sizeof record) / sizeof(BlockRepeat)) {
    damaged(offset, "a list longer than its record");
  }
  Memory& m = memory_[record.file];
  m.repeats_at = offset;
  Repeats& repeats = m.layout.repeats;
  const std::uint64_t whole = m.bytes / kChecksumBlock;
  for (std::uint32_t i = 0; i < record.count; ++i) {
    const std::uint64_t at = sizeof record + std::uint64_t{i} * sizeof(BlockRepeat);
    const auto repeat = fixed_part<BlockRepeat>(p + at);
    const std::string what =
        "block " + std::to_string(repeat.block) + " as a repeat of block " + std::to_string(repeat.source);
    if (repeat.block >= whole || repeat.source >= whole) {
      damaged(offset + at, what + ", of " + std::to_string(whole) + " whole ones");
    }
    if (!repeats.emplace(repeat.block, repeat.source).second) damaged(offset + at, what + ", a second time");
  }
  if (repeats.size() > kMostRepeats) damaged(offset, "more repeats than a file has");
}

// What can only be said once all records are read.
void CaptureReader::check_repeats() const {
  for (const Memory& m : memory_) {
    for (const auto& [block, source] : m.layout.repeats) {
      const std::string what =
          "block " + std::to_string(block) + " as a repeat of block " + std::to_string(source);
      if (m.layout.repeats.contains(source)) damaged(m.repeats_at, what + ", which is one itself");
      if (m.sums[block] != m.sums[source]) damaged(m.repeats_at, what + ", which has another checksum");
    }
  }
}

void CaptureReader::check_references() const {
  constexpr RecordType needed[] = {RecordType::process, RecordType::device,      RecordType::dispatch,
                                   RecordType::kernarg, RecordType::code_object, RecordType::end};
  for (const RecordType type : needed) {
    if ((seen_ >> static_cast<unsigned>(type) & 1) == 0) {
      throw DamagedCapture(records_path_ + " has no record of type " +
                           std::to_string(static_cast<unsigned>(type)));
    }
  }
  for (const Memory& m : memory_) {
    const auto missing = std::find(m.known.begin(), m.known.end(), false);
    if (missing != m.known.end()) {
      throw DamagedCapture(records_path_ + " has no checksum for block " +
                           std::to_string(missing - m.known.begin()) + " of " + m.path);
    }
  }
  static_cast<void>(code_object(dispatch.code_object));
  std::vector<const RegionRecord*> by_id(regions.size() + 1);
  for (const Region& region : regions) {
    if (region.record.id == 0 || region.record.id > regions.size() || by_id[region.record.id] != nullptr) {
      throw DamagedCapture(records_path_ + ": region id " + std::to_string(region.record.id) +
                           " is out of order");
    }
    by_id[region.record.id] = &region.record;
    if (region.record.code_object != 0) static_cast<void>(code_object(region.record.code_object));
  }
  for (const ChangeRecord& change : changes) {
    const RegionRecord* region = change.region < by_id.size() ? by_id[change.region] : nullptr;
    if (region == nullptr || change.address < region->address || change.bytes > region->bytes ||
        change.address - region->address > region->bytes - change.bytes) {
      throw DamagedCapture(records_path_ + ": a change outside its region " + std::to_string(change.region));
    }
  }
  for (const Variable& variable : variables) static_cast<void>(code_object(variable.record.code_object));
}

const CodeObject& CaptureReader::code_object(std::uint32_t id) const {
  for (const CodeObject& object : code_objects) {
    if (object.record.id == id) return object;
  }
  throw DamagedCapture(records_path_ + " refers to code object " + std::to_string(id) +
                       ", which it does not hold");
}

std::size_t CaptureReader::read_blocks(MemoryFile file, std::uint64_t first, std::uint64_t blocks,
                                       void* out) const {
  const Memory& m = memory(file);
  if (first > m.sums.size() || blocks > m.sums.size() - first) {
    throw DamagedCapture(m.path + " has " + std::to_string(m.sums.size()) + " blocks, block " +
                         std::to_string(first + blocks) + " was wanted");
  }
  if (blocks == 0) return 0;
  const std::uint64_t offset = first * kChecksumBlock;
  const std::size_t bytes = std::min<std::uint64_t>(blocks * kChecksumBlock, m.bytes - offset);
  for (std::size_t done = 0; done < bytes;) {
    const Stripes::Place place = m.layout.place(offset + done);
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(bytes - done, place.left));
    read_at(m.fds[place.file], Stripes::name(m.path, place.file), static_cast<char*>(out) + done, part,
            place.offset);
    done += part;
  }
  const auto* p = static_cast<const unsigned char*>(out);
  for (std::uint64_t block = 0; block < blocks; ++block) {
    const std::uint64_t at = block * kChecksumBlock;
    check_block(file, first + block, xxh64(p + at, std::min<std::uint64_t>(kChecksumBlock, bytes - at)));
  }
  return bytes;
}

void CaptureReader::check_block(MemoryFile file, std::uint64_t block, std::uint64_t hash) const {
  const Memory& m = memory(file);
  if (block < m.sums.size() && hash == m.sums[block]) return;
  const Stripes::Place place = m.layout.place(block * kChecksumBlock);
  throw DamagedCapture(Stripes::name(m.path, place.file) + ": the block at offset " +
                       std::to_string(place.offset) + " does not match its checksum");
}

void CaptureReader::check_zero_block(MemoryFile file, std::uint64_t block) const {
  static const std::vector<unsigned char> zeros(kChecksumBlock);
  static const std::uint64_t whole = xxh64(zeros.data(), zeros.size());
  const std::uint64_t bytes = std::min(kChecksumBlock, memory(file).bytes - block * kChecksumBlock);
  check_block(file, block, bytes == kChecksumBlock ? whole : xxh64(zeros.data(), bytes));
}

void CaptureReader::read(MemoryFile file, std::uint64_t offset, std::uint64_t bytes, void* out) const {
  const Memory& m = memory(file);
  if (bytes > m.bytes || offset > m.bytes - bytes) {
    throw DamagedCapture(m.path + " has no bytes at offset " + std::to_string(offset));
  }
  std::vector<unsigned char> block(std::min<std::uint64_t>(kChecksumBlock, m.bytes));
  auto* p = static_cast<unsigned char*>(out);
  while (bytes != 0) {
    const std::uint64_t index = offset / kChecksumBlock, within = offset % kChecksumBlock;
    const std::uint64_t take = std::min(bytes, kChecksumBlock - within);
    const bool whole = within == 0 && (take == kChecksumBlock || offset + take == m.bytes);
    if (whole) {
      read_blocks(file, index, 1, p);
    } else {
      read_blocks(file, index, 1, block.data());
      std::memcpy(p, block.data() + within, take);
    }
    p += take, offset += take, bytes -= take;
  }
}

std::vector<unsigned char> CaptureReader::read_code_object(const CodeObject& object) const {
  std::vector<unsigned char> bytes = read_file(object.file);
  if (bytes.size() != object.record.content_bytes) {
    throw DamagedCapture(object.file + " has " + std::to_string(bytes.size()) + " bytes, capture.bin says " +
                         std::to_string(object.record.content_bytes));
  }
  if (xxh64(bytes.data(), bytes.size()) != object.record.content_hash) {
    throw DamagedCapture(object.file + " does not match its checksum");
  }
  return bytes;
}

}  // namespace kerncap::snapshot
