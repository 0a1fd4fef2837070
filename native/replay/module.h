// A loaded code object and the kernel of it that is launched: the captured one, or a variant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/replay_memory.h"
#include "replay/reserve.h"
#include "replay/runtime.h"
#include "snapshot/capture_reader.h"

namespace kerncap::replay {

class Module {
 public:
  // Loads `content`. `at` is where its lowest segment is wanted (0: anywhere); base() says where it is.
  // Throws ReplayError (usage): not loadable on this agent, no such kernel, more LDS than there is.
  Module(Runtime& runtime, const Agent& agent, std::string name, std::vector<unsigned char> content,
         const std::string& symbol, std::uint64_t at);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  [[nodiscard]] std::uint64_t kernel_object() const { return kernel_object_; }
  [[nodiscard]] std::uint32_t kernarg_bytes() const { return kernarg_bytes_; }
  [[nodiscard]] std::uint32_t static_group_bytes() const { return group_bytes_; }
  [[nodiscard]] std::uint32_t static_private_bytes() const { return private_bytes_; }
  [[nodiscard]] std::uint64_t base() const { return base_; }
  [[nodiscard]] std::int64_t delta() const { return delta_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<unsigned char>& content() const { return content_; }
  // Address and size of a variable of that name; size 0: it has none.
  [[nodiscard]] Range variable(const std::string& name) const;

  // Pairs the module's own data, as captured, with where it is in this module: whole segments if this is the
  // captured code object (`same`), else variable by variable. Words that pointed into the captured code
  // object point into this one. Names of variables that have no counterpart, or one of another size, go to
  // `unmatched`.
  void bind_data(const snapshot::CaptureReader& capture, const ReplayMemory& memory, bool same);
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  // Expected bytes after the application's run, for pieces()[i].
  [[nodiscard]] const unsigned char* after(std::size_t piece) const { return after_[piece].data(); }
  [[nodiscard]] const std::vector<std::string>& unmatched() const { return unmatched_; }
  [[nodiscard]] std::uint64_t unmatched_bytes() const { return unmatched_bytes_; }

 private:
  void find_base();
  void find_kernel(const std::string& symbol);
  void add_piece(const snapshot::CaptureReader& capture, const ReplayMemory& memory,
                 const snapshot::RegionRecord& region, std::uint64_t captured, std::uint64_t live,
                 std::uint64_t bytes);

  Runtime& runtime_;
  Agent agent_;
  std::string name_;
  std::vector<unsigned char> content_;
  abi::hsa_code_object_reader_t reader_{};
  abi::hsa_executable_t executable_{};
  std::uint64_t kernel_object_ = 0, base_ = 0;
  std::int64_t delta_ = 0;
  std::uint32_t kernarg_bytes_ = 0, group_bytes_ = 0, private_bytes_ = 0;
  std::vector<Piece> pieces_;
  std::vector<std::vector<unsigned char>> before_, after_;
  std::vector<std::string> unmatched_;
  std::uint64_t unmatched_bytes_ = 0;
};

// The code object with its kernel emptied: the first instruction of `symbol` is replaced by s_endpgm,
// wherever the hardware may enter it. Launching it costs what launching costs, and it writes nothing. Throws
// ReplayError (usage) where the symbol cannot be found.
std::vector<unsigned char> emptied(std::vector<unsigned char> content, const std::string& symbol,
                                   const std::string& arch);

}  // namespace kerncap::replay
