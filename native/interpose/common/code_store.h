// The bytes of every code object that was loaded, by content, for as long as the process may be asked for a
// capture. Memory stays flat however much is loaded: what lies in a mapped file is remembered as a range of
// it, the rest goes to an unlinked file in the session's directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace kerncap::interpose {

class CodeStore {
 public:
  explicit CodeStore(std::string directory) : directory_(std::move(directory)) {}
  ~CodeStore();
  CodeStore(const CodeStore&) = delete;
  CodeStore& operator=(const CodeStore&) = delete;

  // Returns XXH64 of the bytes.
  std::uint64_t add(const void* data, std::size_t bytes);

  // False, and why in `error`, when the bytes can no longer be had unchanged.
  bool read(std::uint64_t hash, std::vector<unsigned char>& out, std::string* error) const;

 private:
  struct Place {
    std::size_t bytes = 0;
    std::string path;  // file that holds them; empty: the spill file, or `memory`
    std::uint64_t offset = 0;
    std::vector<unsigned char> memory;  // where nothing else was possible
  };
  bool spill(const void* data, std::size_t bytes, Place& place);

  std::string directory_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Place> places_;
  int spill_fd_ = -1;
  std::uint64_t spill_bytes_ = 0;
};

}  // namespace kerncap::interpose
