// Which code is loaded, and its predecoded form.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "sim/isa/program.h"

namespace kerncap::sim {

class CodeMap {
 public:
  explicit CodeMap(Arch arch) : arch_(arch) {}
  void load(const std::vector<CodeRange>& ranges);
  void unload(const std::vector<CodeRange>& ranges);

  // The range that holds `address`, and its program, decoded at the first call; nullptr where none is loaded.
  struct Place {
    std::shared_ptr<const isa::Program> program;
    const isa::Inst* inst = nullptr;
  };
  [[nodiscard]] Place find(std::uint64_t address);
  // Symbol of the range at `address`, or "".
  [[nodiscard]] CodeRange range_of(std::uint64_t address) const;

 private:
  struct Entry {
    CodeRange range;
    std::once_flag once;
    std::shared_ptr<const isa::Program> program;
    // Code reached in the middle of what the sweep took for another instruction: decoded again from there.
    std::mutex mutex;
    std::map<std::uint64_t, std::shared_ptr<const isa::Program>> entered_at;
  };
  Arch arch_;
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Entry>> by_base_;
};

}  // namespace kerncap::sim
