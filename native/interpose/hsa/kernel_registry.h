// Which kernel a packet's kernel_object is, and what code is loaded where.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "abi/hsa.h"
#include "interpose/common/code_store.h"
#include "interpose/common/names.h"
#include "interpose/common/triton.h"
#include "interpose/hsa/agents.h"
#include "interpose/hsa/code_metadata.h"
#include "live/live_file.h"

namespace kerncap::interpose {

// One kernel on one device. Lives as long as the process: loading the same code again gives the same one.
struct Kernel {
  std::uint64_t id = 0;  // hash of symbol and code object content
  std::string symbol;    // mangled, without ".kd"
  std::uint64_t code_hash = 0;
  std::uint32_t device = 0;
  live::KernelKind kind = live::KernelKind::unknown;
  Registers registers;
  std::uint32_t kernarg_bytes = 0;
  std::int32_t hostcall_offset = -1;
  std::int32_t multigrid_offset = -1;
  std::atomic<std::uint32_t> row{0};  // 1 + its index in the statistics file; 0: none yet
  std::shared_ptr<Calls> calls;
  // The capture request (its sequence) that this kernel's names were last held against, and the outcome,
  // which is written first.
  std::atomic<std::uint64_t> judged{0};
  std::atomic<Match> match{Match::none};
};

struct LoadedVariable {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

struct LoadedCode {
  std::uint32_t id = 0;  // from 1, in order of loading
  abi::hsa_agent_t agent{};
  std::uint64_t executable = 0;
  std::uint64_t content_hash = 0;
  std::uint64_t content_bytes = 0;
  std::string uri;
  std::uint64_t load_base = 0;
  std::uint64_t load_bytes = 0;
  std::int64_t load_delta = 0;
  std::vector<LoadedVariable> variables;
};

class KernelRegistry {
 public:
  KernelRegistry(const Agents& agents, CodeStore& store) : agents_(agents), store_(store) {}

  // Code-object readers, whose bytes are needed when they are loaded.
  void reader_created(std::uint64_t reader, const void* data, std::size_t bytes);
  void reader_created(std::uint64_t reader, int file);
  void reader_destroyed(std::uint64_t reader);

  void code_loaded(abi::hsa_executable_t executable, abi::hsa_agent_t agent, std::uint64_t reader,
                   abi::hsa_loaded_code_object_t loaded);
  void executable_frozen(abi::hsa_executable_t executable);
  void executable_destroyed(abi::hsa_executable_t executable);

  // Everything loaded before this registry existed (a forked child, a late start).
  void adopt_loaded();

  // Null: not a kernel of any code that is loaded.
  Kernel* find(std::uint64_t kernel_object);
  // Changes whenever an answer of find() may change.
  [[nodiscard]] std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // The kernels of the code that is loaded now, each once, in no order.
  std::vector<Kernel*> loaded_kernels() const;

  // What is loaded now.
  std::vector<LoadedCode> loaded() const;

 private:
  struct Reader {
    const void* data = nullptr;
    std::size_t bytes = 0;
    std::vector<unsigned char> copy;  // of a file
  };
  struct Content {
    std::uint64_t hash = 0;
    std::uint64_t bytes = 0;
    std::shared_ptr<const CodeMetadata> metadata;
  };
  struct Loaded {
    LoadedCode code;
    std::shared_ptr<const CodeMetadata> metadata;
  };
  Content take_content(std::uint64_t reader, abi::hsa_loaded_code_object_t loaded);
  void add_symbol(abi::hsa_executable_symbol_t symbol, std::uint64_t executable);
  Loaded* holder(std::uint64_t address, abi::hsa_agent_t agent, std::uint64_t executable);
  Kernel* kernel(const std::string& symbol, const Loaded* holder, const AgentInfo* agent);

  const Agents& agents_;
  CodeStore& store_;
  mutable std::shared_mutex mutex_;
  std::atomic<std::uint64_t> generation_{1};
  std::unordered_map<std::uint64_t, Reader> readers_;
  std::unordered_map<std::uint64_t, std::weak_ptr<const CodeMetadata>> metadata_;  // by content
  std::deque<Loaded> loaded_;
  std::uint32_t next_id_ = 1;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::unique_ptr<Kernel>> kernels_;  // by id and device
  struct Object {
    Kernel* kernel;
    std::uint64_t executable;
  };
  std::unordered_map<std::uint64_t, Object> by_object_;
};

}  // namespace kerncap::interpose
