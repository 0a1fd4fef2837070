// Writes a capture as a transaction: in OUTPUT.partial-<pid>, renamed to OUTPUT once all of it is on the
// disk. Everything throws IoError; destroying a writer that was not committed removes the partial directory.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "snapshot/block_file.h"
#include "snapshot/records.h"

namespace kerncap::snapshot {

class CaptureWriter {
 public:
  explicit CaptureWriter(std::string output);
  ~CaptureWriter();
  CaptureWriter(const CaptureWriter&) = delete;
  CaptureWriter& operator=(const CaptureWriter&) = delete;

  BlockFile& pre() { return *pre_; }
  BlockFile& post() { return *post_; }

  // Appends a record; fills in its header. `strings` follow the fixed part in the order given.
  template <typename Record>
  void add(Record record, RecordType type, std::initializer_list<std::string_view> strings = {}) {
    static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % 8 == 0);
    record.header = {type, 0};
    append(&record, sizeof record, strings);
  }

  // code/<hash>.hsaco; a second call with the same hash does nothing.
  void add_code_object(std::uint64_t hash, const void* data, std::size_t bytes);

  // Checksums, repeats and end records, flush, rename. `output` must still not exist.
  void commit();

  [[nodiscard]] const std::string& partial() const { return partial_; }

 private:
  void append(const void* fixed, std::size_t bytes, std::initializer_list<std::string_view> strings);
  void add_checksums(std::uint32_t file, const std::vector<std::uint64_t>& sums);
  void add_repeats(std::uint32_t file, const Repeats& repeats);
  void write_records();
  void discard();

  std::string output_;
  std::string partial_;
  bool committed_ = false;
  std::unique_ptr<BlockFile> pre_;
  std::unique_ptr<BlockFile> post_;
  std::vector<unsigned char> records_;
  std::uint64_t record_count_ = 0;
  std::unordered_set<std::uint64_t> code_hashes_;
};

// OUTPUT.partial-<pid>, where a process writes the capture that will be OUTPUT.
std::string partial_path(const std::string& output, unsigned pid);

}  // namespace kerncap::snapshot
