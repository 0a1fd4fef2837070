// Reads what capture_writer wrote. Everything throws DamagedCapture (file and offset) or IoError.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "snapshot/layout.h"
#include "snapshot/records.h"

namespace kerncap::snapshot {

struct CodeObject {
  CodeObjectRecord record;
  std::string uri;
  std::string file;  // path of code/<hash>.hsaco
};

struct Variable {
  VariableRecord record;
  std::string name;
};

struct Region {
  RegionRecord record;
  std::string reason;  // why it is not saved
};

// How a kernel was launched on a CUDA device.
struct CudaLaunch {
  CudaLaunchRecord record{};
  std::vector<CudaParameter> parameters;
  std::vector<CudaLaunchAttribute> attributes;
};

// Which of the two memory files.
enum class MemoryFile : std::uint32_t { pre = 0, post = 1 };

class CaptureReader {
 public:
  // Reads and checks capture.bin in `directory`: header, checksum, records, references between them, and that
  // memory.pre and memory.post are as long as it says. Their content is checked as it is read.
  explicit CaptureReader(std::string directory);
  ~CaptureReader();
  CaptureReader(const CaptureReader&) = delete;
  CaptureReader& operator=(const CaptureReader&) = delete;

  ProcessRecord process{};
  std::string executable, working_directory, runtime;
  DeviceRecord device{};
  std::string isa, agent_name, product;
  DispatchRecord dispatch{};
  std::string symbol, demangled;
  std::optional<CudaLaunch> cuda_launch;  // of a capture from a CUDA device
  KernargRecord kernarg{};
  std::vector<unsigned char> kernarg_bytes;
  std::vector<CodeObject> code_objects;
  std::vector<Variable> variables;
  std::vector<Region> regions;
  std::vector<ChangeRecord> changes;
  std::uint64_t pre_bytes = 0;
  std::uint64_t post_bytes = 0;

  // Where the bytes of a memory file lie.
  [[nodiscard]] const Layout& layout(MemoryFile file) const { return memory(file).layout; }

  // The code object with CodeObjectRecord::id `id`.
  [[nodiscard]] const CodeObject& code_object(std::uint32_t id) const;

  // Whole blocks, from block `first` on, into `out` (`blocks` * kChecksumBlock bytes; the last block of the
  // file may be shorter). Each block's checksum is verified. Returns the bytes read. Thread safe.
  std::size_t read_blocks(MemoryFile file, std::uint64_t first, std::uint64_t blocks, void* out) const;

  // For who maps the file: throws DamagedCapture unless the block has this hash; or unless it is of zeros.
  void check_block(MemoryFile file, std::uint64_t block, std::uint64_t hash) const;
  [[nodiscard]] bool block_is(MemoryFile file, std::uint64_t block, std::uint64_t hash) const {
    return block < memory(file).sums.size() && memory(file).sums[block] == hash;
  }
  void check_zero_block(MemoryFile file, std::uint64_t block) const;

  // Any range; verifies every block it touches. Thread safe.
  void read(MemoryFile file, std::uint64_t offset, std::uint64_t bytes, void* out) const;

  // The bytes of a code object, verified against its hash.
  [[nodiscard]] std::vector<unsigned char> read_code_object(const CodeObject& object) const;

 private:
  struct Memory {
    std::string path;
    Layout layout;
    std::vector<int> fds;
    std::uint64_t bytes = 0;
    std::vector<std::uint64_t> sums;
    std::vector<bool> known;
    std::uint64_t repeats_at = 0;  // in capture.bin
  };
  [[nodiscard]] const Memory& memory(MemoryFile file) const { return memory_[static_cast<unsigned>(file)]; }
  void read_records(const std::vector<unsigned char>& bytes);
  void read_record(const RecordHeader& header, const unsigned char* record, std::uint64_t offset);
  void read_checksums(const unsigned char* record, std::uint64_t offset);
  void read_repeats(const unsigned char* record, std::uint64_t offset);
  void open_memory(MemoryFile file, const char* name);
  void close_memory();
  void check_references() const;
  void check_repeats() const;
  [[noreturn]] void damaged(std::uint64_t offset, const std::string& why) const;

  std::string directory_;
  std::string records_path_;
  Memory memory_[2];
  unsigned seen_ = 0;  // bit per RecordType
};

}  // namespace kerncap::snapshot
