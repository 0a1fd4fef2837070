#include "replay/cuda/module.h"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "replay/error.h"

namespace kerncap::replay {

using namespace abi;  // NOLINT: the ABI's own names

Module::Module(Runtime& runtime, const Agent& agent, std::string name, std::vector<unsigned char> content,
               const std::string& symbol, std::uint64_t)
    : runtime_(runtime), name_(std::move(name)) {
  const CudaDriver& cuda = runtime_.cuda;
  content.push_back(0);  // PTX is a string
  std::vector<char> log(8192);
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  const CUresult loaded = cuda.cuModuleLoadDataEx(&module_, content.data(), 2, options, values);
  if (loaded != CUDA_SUCCESS) {
    const std::string told(log.data(), ::strnlen(log.data(), log.size()));
    throw ReplayError(ErrorClass::usage, name_ + " cannot be loaded on this " + agent.product + " (" +
                                             agent.name + "): " + runtime_.status_text(loaded) +
                                             (told.empty() ? "" : "\n" + told));
  }
  if (cuda.cuModuleGetFunction(&function_, module_, symbol.c_str()) != CUDA_SUCCESS)
    throw ReplayError(ErrorClass::usage, name_ + " has no kernel " + symbol);
  const auto number = [&](CUfunction_attribute what) {
    int value = 0;
    runtime_.check(cuda.cuFuncGetAttribute(&value, what, function_), "examining " + symbol);
    return static_cast<std::uint32_t>(value);
  };
  group_bytes_ = number(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  private_bytes_ = number(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  if (cuda.cuFuncGetParamInfo == nullptr) return;
  parameters_known_ = true;
  std::size_t offset = 0, bytes = 0;
  for (std::size_t i = 0; cuda.cuFuncGetParamInfo(function_, i, &offset, &bytes) == CUDA_SUCCESS; ++i) {
    parameters_.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)});
    kernarg_bytes_ = std::max(kernarg_bytes_, static_cast<std::uint32_t>(offset + bytes));
  }
}

Range Module::variable(const std::string& name) const {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  if (runtime_.cuda.cuModuleGetGlobal(&address, &bytes, module_, name.c_str()) != CUDA_SUCCESS) return {};
  return {address, bytes};
}

std::uint64_t Module::moved(std::uint64_t word) const { return of_variable(word).value_or(word); }

void Module::bind_data(const snapshot::CaptureReader& capture, const ReplayMemory& memory, bool) {
  const Find find = [this](const std::string& wanted) { return variable(wanted); };
  find_variables(capture, find);
  const auto& code = capture.code_object(capture.dispatch.code_object).record;
  for (const snapshot::Variable& item : capture.variables) {
    if (item.record.code_object == code.id && item.record.address == code.load_base)
      base_ = variable(item.name).base;
  }
  bind_variables(capture, memory, find, [this](std::uint64_t word, bool*) { return moved(word); });
}

void Module::set(CUfunction_attribute what, int value, const std::string& doing) const {
  const CUresult result = runtime_.cuda.cuFuncSetAttribute(function_, what, value);
  if (result != CUDA_SUCCESS) {
    throw ReplayError(ErrorClass::usage,
                      name_ + ": " + doing + " is refused: " + runtime_.status_text(result));
  }
}

void complete_launch(Launch& launch, const snapshot::CaptureReader& capture, const Module& module) {
  if (!capture.cuda_launch) throw ReplayError(ErrorClass::usage, "the capture is of no NVIDIA GPU");
  const snapshot::CudaLaunch& shape = *capture.cuda_launch;
  launch.shape = &shape;
  const auto same = [](const snapshot::CudaParameter& a, const snapshot::CudaParameter& b) {
    return a.offset == b.offset && a.bytes == b.bytes;
  };
  const auto& ours = module.parameters_;
  const auto& captured = shape.parameters;
  if (module.parameters_known_ && !captured.empty() &&
      !std::equal(ours.begin(), ours.end(), captured.begin(), captured.end(), same)) {
    throw ReplayError(ErrorClass::usage, module.name() + ": the kernel takes " + std::to_string(ours.size()) +
                                             " parameters in " + std::to_string(module.kernarg_bytes()) +
                                             " bytes, the captured one " + std::to_string(captured.size()) +
                                             ", or at other offsets: a variant has to take the same");
  }
  // The given size counts the captured kernel's static shared memory; a variant's own may be another.
  const snapshot::CudaLaunchRecord& record = shape.record;
  const std::uint32_t given = launch.packet.group_segment_size;
  const std::uint32_t dynamic = given > record.static_shared ? given - record.static_shared : 0;
  launch.packet.group_segment_size = dynamic;
  launch.parameter_bytes = capture.kernarg_bytes.size();
  auto* const parameters = static_cast<unsigned char*>(launch.packet.kernarg_address);
  for (std::uint64_t at = 0; at + 8 <= launch.parameter_bytes; at += 4) {
    std::uint64_t word = 0;
    std::memcpy(&word, parameters + at, sizeof word);
    const std::uint64_t now = module.moved(word);
    if (now != word) std::memcpy(parameters + at, &now, sizeof now);
  }
  const int wanted = std::max(record.max_dynamic_shared, static_cast<std::int32_t>(dynamic));
  if (dynamic > 0 && wanted > 0) {
    module.set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, wanted,
               std::to_string(wanted) + " bytes of dynamic shared memory");
  }
  if (record.shared_carveout >= 0)
    module.set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, record.shared_carveout, "the carve-out");
  constexpr std::uint32_t kPortableCluster =
      8;  // blocks; CUDA C++ Programming Guide, "Thread Block Clusters"
  if (record.non_portable_cluster > 0 || launch.cluster > kPortableCluster)
    module.set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, "a cluster of a non-portable size");
}

std::vector<unsigned char> emptied(std::vector<unsigned char> content, const std::string& symbol,
                                   const std::string& arch) {
  // EXIT, unpredicated, in the 128-bit encoding of sm_70 and later.
  constexpr std::uint64_t kExit[] = {0x000000000000794d, 0x000fea0003800000};
  const auto no_code = [&] {
    throw ReplayError(ErrorClass::usage, "the code of " + symbol + " cannot be found in the captured cubin");
  };
  if (std::atoi(arch.c_str() + std::min<std::size_t>(3, arch.size())) < 70)
    throw ReplayError(ErrorClass::usage, "kernels for " + arch + " cannot be emptied");
  const auto read = [&](std::uint64_t offset, void* out, std::size_t bytes) {
    if (offset > content.size() || bytes > content.size() - offset) no_code();
    std::memcpy(out, content.data() + offset, bytes);
  };
  Elf64_Ehdr header;
  read(0, &header, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) no_code();
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  for (std::size_t i = 0; i < sections.size(); ++i)
    read(header.e_shoff + i * sizeof(Elf64_Shdr), &sections[i], sizeof(Elf64_Shdr));
  if (header.e_shstrndx >= sections.size()) no_code();
  const std::string wanted = ".text." + symbol;
  for (const Elf64_Shdr& section : sections) {
    const std::uint64_t name_at = sections[header.e_shstrndx].sh_offset + section.sh_name;
    if (name_at > content.size() || content.size() - name_at <= wanted.size()) continue;
    const char* const name = reinterpret_cast<const char*>(content.data()) + name_at;
    if (std::string_view(name, wanted.size()) != wanted || name[wanted.size()] != 0) continue;
    if (section.sh_offset > content.size() || sizeof kExit > content.size() - section.sh_offset) no_code();
    std::memcpy(content.data() + section.sh_offset, kExit, sizeof kExit);
    return content;
  }
  no_code();
  return content;
}

}  // namespace kerncap::replay
