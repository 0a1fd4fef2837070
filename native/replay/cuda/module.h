// A loaded cubin (or PTX, which the driver compiles) and the kernel of it that is launched.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/cuda/launcher.h"
#include "replay/module_data.h"
#include "snapshot/capture_reader.h"

namespace kerncap::replay {

class Module : public ModuleData {
 public:
  // Loads `content`; the driver chooses the place, whatever `at` says. Throws ReplayError (usage): not
  // loadable on this GPU, no such kernel.
  Module(Runtime& runtime, const Agent& agent, std::string name, std::vector<unsigned char> content,
         const std::string& symbol, std::uint64_t at);

  [[nodiscard]] std::uint64_t kernel_object() const { return reinterpret_cast<std::uint64_t>(function_); }
  [[nodiscard]] std::uint32_t kernarg_bytes() const { return kernarg_bytes_; }
  [[nodiscard]] std::uint32_t static_group_bytes() const { return group_bytes_; }
  [[nodiscard]] std::uint32_t static_private_bytes() const { return private_bytes_; }
  // Where what lay at the captured code's load base is now; 0: it has no variables.
  [[nodiscard]] std::uint64_t base() const { return base_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  // Address and size of a variable of that name; size 0: it has none.
  [[nodiscard]] Range variable(const std::string& name) const;

  // Pairs the module's variables, as captured, with where they are in this module.
  void bind_data(const snapshot::CaptureReader& capture, const ReplayMemory& memory, bool same);

 private:
  friend void complete_launch(Launch& launch, const snapshot::CaptureReader& capture, const Module& module);
  [[nodiscard]] std::uint64_t moved(std::uint64_t word) const;
  void set(abi::CUfunction_attribute what, int value, const std::string& doing) const;

  Runtime& runtime_;
  std::string name_;
  abi::CUmodule module_ = nullptr;
  abi::CUfunction function_ = nullptr;
  std::uint64_t base_ = 0;
  std::uint32_t kernarg_bytes_ = 0, group_bytes_ = 0, private_bytes_ = 0;
  std::vector<snapshot::CudaParameter> parameters_;
  bool parameters_known_ = false;
};

// Gives a launch its shape, its dynamic shared memory, the kernel's attributes, and parameters that point to
// this module's variables where they pointed to the captured one's. Throws ReplayError (usage) where the
// kernel does not take the captured parameters.
void complete_launch(Launch& launch, const snapshot::CaptureReader& capture, const Module& module);

// The cubin with its kernel emptied: its first instruction is replaced by one that ends it. Throws
// ReplayError (usage) where its code cannot be found.
std::vector<unsigned char> emptied(std::vector<unsigned char> content, const std::string& symbol,
                                   const std::string& arch);

}  // namespace kerncap::replay
