// Shared virtual memory: ranges of the program's own memory that GPUs may access, with their attributes.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "abi/hsa.h"
#include "sim/hsa/memory.h"

namespace kerncap::sim::rt {

class Runtime;

class Svm {
 public:
  explicit Svm(Runtime* runtime) : runtime_(runtime) {}

  abi::hsa_status_t set(std::uint64_t base, std::uint64_t size, const abi::hsa_amd_svm_attribute_pair_t* list,
                        std::size_t count);
  abi::hsa_status_t get(std::uint64_t base, std::uint64_t size, abi::hsa_amd_svm_attribute_pair_t* list,
                        std::size_t count) const;
  void prefetched(std::uint64_t base, std::uint64_t size, abi::hsa_agent_t agent);

 private:
  struct Attributes {
    std::uint64_t global_flag = abi::HSA_AMD_SVM_GLOBAL_FLAG_FINE_GRAINED;
    std::uint64_t read_only = 0;
    std::uint64_t hive_local = 0;
    std::uint64_t granularity = 9;  // log2 of pages: 2 MiB
    std::uint64_t preferred = 0;    // agents' handles
    std::uint64_t prefetch = 0;
    std::uint64_t read_mostly = 0;
    std::uint64_t gpu_exec = 0;
    GpuSet accessible = 0;
    GpuSet in_place = 0;  // of those: accessed where the memory is
  };
  struct Range {
    std::uint64_t size;
    Attributes attributes;
  };

  static std::uint64_t* field(Attributes& attributes, std::uint64_t attribute);
  // Splits ranges at the borders so that [base, base + size) is made of whole ones, new where there were
  // none.
  void carve(std::uint64_t base, std::uint64_t size);

  Runtime* runtime_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Range> ranges_;
};

}  // namespace kerncap::sim::rt
