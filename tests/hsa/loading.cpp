// Loading code: readers, executables, external variables, the loader extension. argv: code, code with an
// external.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "hsa_program.h"
#include "sim/hsa/kerncap_sim.h"

namespace {

hsa_ven_amd_loader_1_03_pfn_t loader() {
  hsa_ven_amd_loader_1_03_pfn_t table{};
  bool supported = false;
  OK(hsa_system_extension_supported(HSA_EXTENSION_AMD_LOADER, 1, 3, &supported));
  CHECK(supported);
  OK(hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER, 1, sizeof table, &table));
  return table;
}

struct Loaded {
  std::uint64_t base = 0, size = 0;
  std::int64_t delta = 0;
  std::string uri;
};

Loaded describe(const hsa_ven_amd_loader_1_03_pfn_t& table, hsa_executable_t executable) {
  Loaded out;
  std::vector<hsa_loaded_code_object_t> objects;
  OK(table.hsa_ven_amd_loader_executable_iterate_loaded_code_objects(
      executable,
      [](hsa_executable_t, hsa_loaded_code_object_t object, void* data) {
        static_cast<std::vector<hsa_loaded_code_object_t>*>(data)->push_back(object);
        return HSA_STATUS_SUCCESS;
      },
      &objects));
  CHECK_EQ(objects.size(), 1);
  auto get = table.hsa_ven_amd_loader_loaded_code_object_get_info;
  std::uint32_t length = 0;
  OK(get(objects[0], HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE, &out.base));
  OK(get(objects[0], HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE, &out.size));
  OK(get(objects[0], HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA, &out.delta));
  OK(get(objects[0], HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH, &length));
  out.uri.resize(length);
  OK(get(objects[0], HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI, out.uri.data()));
  return out;
}

void from_file(const Machine& m, const char* path) {
  const auto table = loader();
  const int file = open(path, O_RDONLY);
  hsa_code_object_reader_t reader;
  OK(hsa_code_object_reader_create_from_file(file, &reader));
  hsa_executable_t executable;
  OK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr,
                               &executable));
  OK(hsa_executable_load_agent_code_object(executable, m.gpu, reader, nullptr, nullptr));
  FAILS(HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED,
        hsa_executable_load_agent_code_object(executable, m.gpu, reader, nullptr, nullptr));
  OK(hsa_executable_freeze(executable, nullptr));
  FAILS(HSA_STATUS_ERROR_FROZEN_EXECUTABLE, hsa_executable_freeze(executable, nullptr));
  OK(hsa_code_object_reader_destroy(reader));
  close(file);
  const Loaded loaded = describe(table, executable);
  CHECK(loaded.uri == std::string("file://") + path);
  Module code{executable, m.gpu, {}};
  const std::uint64_t kernel = code.kernel("add");
  CHECK(kernel >= loaded.base && kernel < loaded.base + loaded.size);
  const void* host = nullptr;
  OK(table.hsa_ven_amd_loader_query_host_address(reinterpret_cast<const void*>(kernel), &host));
  CHECK(std::memcmp(host, reinterpret_cast<const void*>(kernel), sizeof(amd_kernel_descriptor_t)) == 0);
  hsa_executable_t found{};
  OK(table.hsa_ven_amd_loader_query_executable(reinterpret_cast<const void*>(kernel), &found));
  CHECK_EQ(found.handle, executable.handle);
  std::size_t segments = 0;
  OK(table.hsa_ven_amd_loader_query_segment_descriptors(nullptr, &segments));
  CHECK(segments >= 2);
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  OK(hsa_amd_pointer_info(reinterpret_cast<const void*>(kernel), &info, nullptr, nullptr, nullptr));
  CHECK(info.type == HSA_EXT_POINTER_TYPE_HSA &&
        info.agentBaseAddress == reinterpret_cast<void*>(loaded.base));
  // Attributes of a kernel.
  hsa_executable_symbol_t symbol = code.symbol("add.kd");
  std::uint32_t kernarg = 0, alignment = 0, lds = 1, scratch = 1;
  OK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE,
                                    &kernarg));
  OK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT,
                                    &alignment));
  OK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &lds));
  OK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
                                    &scratch));
  CHECK(kernarg >= 12 && alignment == 16 && lds == 0 && scratch == 0);
  int symbols = 0;
  OK(hsa_executable_iterate_agent_symbols(
      executable, m.gpu,
      [](hsa_executable_t, hsa_agent_t, hsa_executable_symbol_t, void* n) {
        ++*static_cast<int*>(n);
        return HSA_STATUS_SUCCESS;
      },
      &symbols));
  CHECK(symbols >= 8 + 4);
  OK(hsa_executable_destroy(executable));
  FAILS(HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL,
        hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
                                       &scratch));
  FAILS(HSA_STATUS_ERROR_INVALID_EXECUTABLE, hsa_executable_destroy(executable));
}

void external_variable(const Machine& m, const char* path) {
  std::vector<char> bytes = read_file(path);
  hsa_code_object_reader_t reader;
  OK(hsa_code_object_reader_create_from_memory(bytes.data(), bytes.size(), &reader));
  hsa_executable_t executable;
  OK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr,
                               &executable));
  FAILS(HSA_STATUS_ERROR_VARIABLE_UNDEFINED,
        hsa_executable_load_agent_code_object(executable, m.gpu, reader, nullptr, nullptr));
  auto* outside = allocate(m.device, 1);
  *outside = 4711;
  OK(hsa_executable_agent_global_variable_define(executable, m.gpu, "outside", outside));
  FAILS(HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED,
        hsa_executable_agent_global_variable_define(executable, m.gpu, "outside", outside));
  OK(hsa_executable_load_agent_code_object(executable, m.gpu, reader, nullptr, nullptr));
  OK(hsa_executable_freeze(executable, nullptr));
  Module code{executable, m.gpu, {}};
  auto* out = allocate(m.device, 1);
  hsa_queue_t* queue = make_queue(m.gpu);
  hsa_signal_t done = make_signal(1);
  auto packet = dispatch_packet(m, code.kernel("external"), 1, done, out);
  submit(queue, &packet);
  WAIT_ZERO(done);
  CHECK_EQ(*out, 4711);
  OK(hsa_queue_destroy(queue));
  OK(hsa_executable_destroy(executable));
}

// Files that are cut short or changed are refused, and never crash the program.
void damaged(const Machine& m, const char* path) {
  const std::vector<char> good = read_file(path);
  hsa_executable_t executable;
  OK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr,
                               &executable));
  auto load = [&](const std::vector<char>& bytes) {
    hsa_code_object_reader_t reader;
    OK(hsa_code_object_reader_create_from_memory(bytes.data(), bytes.size(), &reader));
    hsa_status_t status = hsa_executable_load_agent_code_object(executable, m.gpu, reader, nullptr, nullptr);
    OK(hsa_code_object_reader_destroy(reader));
    return status;
  };
  for (std::size_t size :
       {std::size_t{1}, std::size_t{63}, std::size_t{64}, good.size() / 3, good.size() - 100})
    CHECK(load(std::vector<char>(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))) !=
          HSA_STATUS_SUCCESS);
  std::vector<char> other = good;
  other[48] = 0x36;  // EF_AMDGPU_MACH of gfx1030
  FAILS(HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, load(other));
  other[48] = 0x3f;  // of gfx90a
  FAILS(HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, load(other));
  other = good;
  other[18] = 62;  // x86-64
  FAILS(HSA_STATUS_ERROR_INVALID_CODE_OBJECT, load(other));
  OK(load(good));
  OK(hsa_executable_destroy(executable));
}

// An instruction that the simulator does not know is named when the code is loaded, not when it runs.
void unknown_instruction(const Machine& m, const char* path) {
  const auto table = loader();
  Module good = load_module(m.gpu, path);
  const Loaded where = describe(table, good.executable);
  const std::uint64_t kernel = good.kernel("add");
  const auto* descriptor = reinterpret_cast<const amd_kernel_descriptor_t*>(kernel);
  const std::uint64_t entry = kernel + static_cast<std::uint64_t>(descriptor->kernel_code_entry_byte_offset);
  std::vector<hsa_ven_amd_loader_segment_descriptor_t> segments(64);
  std::size_t count = 0;
  OK(table.hsa_ven_amd_loader_query_segment_descriptors(nullptr, &count));
  segments.resize(count);
  OK(table.hsa_ven_amd_loader_query_segment_descriptors(segments.data(), &count));
  std::vector<char> bytes = good.bytes;
  bool patched = false;
  for (const auto& s : segments) {
    const auto base = reinterpret_cast<std::uint64_t>(s.segment_base);
    if (entry < base || entry >= base + s.segment_size) continue;
    std::memset(bytes.data() + s.code_object_storage_offset + (entry - base), 0xff, 4);
    patched = true;
  }
  CHECK(patched && where.size > 0);
  OK(hsa_executable_destroy(good.executable));
  hsa_code_object_reader_t reader;
  OK(hsa_code_object_reader_create_from_memory(bytes.data(), bytes.size(), &reader));
  hsa_executable_t executable;
  OK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr,
                               &executable));
  FAILS(HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
        hsa_executable_load_agent_code_object(executable, m.gpu, reader, nullptr, nullptr));
  OK(hsa_executable_destroy(executable));
}

void placed(const Machine& m, const char* path) {
  const auto table = loader();
  auto place = reinterpret_cast<decltype(&kerncap_sim_place_next_code_object)>(
      dlsym(RTLD_DEFAULT, "kerncap_sim_place_next_code_object"));
  Module first = load_module(m.gpu, path);
  const Loaded where = describe(table, first.executable);
  place(where.base);
  Module second = load_module(m.gpu, path);
  CHECK(describe(table, second.executable).base != where.base);  // taken
  OK(hsa_executable_destroy(first.executable));
  place(where.base);
  Module third = load_module(m.gpu, path);
  CHECK_EQ(describe(table, third.executable).base, where.base);
  OK(hsa_executable_destroy(second.executable));
  OK(hsa_executable_destroy(third.executable));
}

}  // namespace

int main(int, char** argv) {
  Machine m = open_machine();
  from_file(m, argv[1]);
  external_variable(m, argv[2]);
  damaged(m, argv[1]);
  unknown_instruction(m, argv[1]);
  placed(m, argv[1]);
  OK(hsa_shut_down());
  std::puts("loading ok");
}
