// A loaded code object and the kernel of it that is launched: the captured one, or a variant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/launcher.h"
#include "replay/module_data.h"
#include "replay/runtime.h"
#include "snapshot/capture_reader.h"

namespace kerncap::replay {

class Module : public ModuleData {
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
  // captured code object (`same`), else variable by variable.
  void bind_data(const snapshot::CaptureReader& capture, const ReplayMemory& memory, bool same);

 private:
  void find_base();
  void find_kernel(const std::string& symbol);

  Runtime& runtime_;
  Agent agent_;
  std::string name_;
  std::vector<unsigned char> content_;
  abi::hsa_code_object_reader_t reader_{};
  abi::hsa_executable_t executable_{};
  std::uint64_t kernel_object_ = 0, base_ = 0;
  std::int64_t delta_ = 0;
  std::uint32_t kernarg_bytes_ = 0, group_bytes_ = 0, private_bytes_ = 0;
};

// Gives a launch what it takes beyond the packet: nothing, on HSA.
inline void complete_launch(Launch&, const snapshot::CaptureReader&, const Module&) {}

// The code object with its kernel emptied: the first instruction of `symbol` is replaced by s_endpgm,
// wherever the hardware may enter it. Launching it costs what launching costs, and it writes nothing. Throws
// ReplayError (usage) where the symbol cannot be found.
std::vector<unsigned char> emptied(std::vector<unsigned char> content, const std::string& symbol,
                                   const std::string& arch);

}  // namespace kerncap::replay
