#include "sim/hsa/load_image.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "sim/hsa/runtime.h"
#include "sim/within.h"

namespace kerncap::sim::rt {
namespace {

using namespace kerncap::abi;  // NOLINT

// LLVM AMDGPUUsage, "AMDGPU ELF Header e_flags" (code object v4 and later).
constexpr std::uint32_t kMachineMask = 0x0ff;
constexpr std::uint32_t kXnackMask = 0x300, kXnackOn = 0x300;
constexpr std::uint32_t kSrameccMask = 0xc00, kSrameccOff = 0x800;

// The same, "Relocation Records".
enum : std::uint32_t {
  kRelocNone = 0,
  kRelocAbs32Lo = 1,
  kRelocAbs32Hi = 2,
  kRelocAbs64 = 3,
  kRelocRel32 = 4,
  kRelocRel64 = 5,
  kRelocAbs32 = 6,
  kRelocRel32Lo = 10,
  kRelocRel32Hi = 11,
  kRelocRelative64 = 13,
};

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
}

hsa_status_t copy_segments(Runtime* rt, const ElfImage& image, LoadedCodeObject* object, std::string* error) {
  object->low_address = page_down(image.low_address());
  object->size = page_up(image.high_address()) - object->low_address;
  Pool* pool = object->agent->pools.front().get();
  void* memory = nullptr;
  hsa_status_t status =
      rt->memory.allocate(pool, object->size, Block::Origin::code, 0, &memory, rt->loader.take_next_base());
  if (status != HSA_STATUS_SUCCESS) {
    *error = "no memory for " + std::to_string(object->size) + " bytes of code";
    return status;
  }
  object->base = reinterpret_cast<std::uint64_t>(memory);
  object->segments = image.load_segments();
  for (const Elf64_Phdr& segment : object->segments) {
    auto bytes = image.slice(segment.p_offset, segment.p_filesz);
    std::memcpy(reinterpret_cast<void*>(object->delta() + segment.p_vaddr), bytes.data(), bytes.size());
  }
  return HSA_STATUS_SUCCESS;
}

// Pages go to the GPU as runs of equal protection. Only instructions are read-only: a __constant__ variable
// lies in a read-only segment, and HIP's copy kernel writes it all the same (ROCr lets it).
void publish_segments(LoadedCodeObject* object) {
  const std::uint64_t pages = object->size / kPageBytes;
  enum : char { kHole, kReadOnly, kWritable };
  std::vector<char> kind(pages, kHole);
  for (const Elf64_Phdr& segment : object->segments) {
    const std::uint64_t first = page_down(segment.p_vaddr - object->low_address) / kPageBytes;
    const std::uint64_t last = page_up(segment.p_vaddr + segment.p_memsz - object->low_address) / kPageBytes;
    const char wanted = (segment.p_flags & PF_X) == 0 ? kWritable : kReadOnly;
    for (std::uint64_t page = first; page < last; ++page) kind[page] = std::max(kind[page], wanted);
  }
  for (std::uint64_t page = 0; page < pages;) {
    std::uint64_t end = page + 1;
    while (end < pages && kind[end] == kind[page]) ++end;
    const std::uint64_t base = object->base + page * kPageBytes;
    if (kind[page] != kHole &&
        object->agent->memory.add({base, (end - page) * kPageBytes, kind[page] == kWritable, "code"}))
      object->published.push_back(base);
    page = end;
  }
}

// The address that a relocation's symbol stands for.
hsa_status_t resolve(const ElfImage& image, const LoadedCodeObject& object, std::uint32_t index,
                     std::uint64_t* address, std::string* error) {
  *address = 0;
  if (index == 0) return HSA_STATUS_SUCCESS;
  if (index >= image.dynamic_symbols().size()) {
    *error = "a relocation names symbol " + std::to_string(index) + ", which is not there";
    return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
  }
  const ElfImage::Symbol& symbol = image.dynamic_symbols()[index];
  if (symbol.section != SHN_UNDEF) {
    *address = symbol.section == SHN_ABS ? symbol.value : object.delta() + symbol.value;
    return HSA_STATUS_SUCCESS;
  }
  if (const LoadedSymbol* defined = object.executable->find(symbol.name, object.agent)) {
    *address = defined->address;
    return HSA_STATUS_SUCCESS;
  }
  if (symbol.binding == STB_WEAK) return HSA_STATUS_SUCCESS;
  *error = "undefined symbol " + std::string(symbol.name) +
           "; define it with hsa_executable_agent_global_variable_define before loading";
  return HSA_STATUS_ERROR_VARIABLE_UNDEFINED;
}

hsa_status_t relocate(const ElfImage& image, const LoadedCodeObject& object, std::string* error) {
  for (const ElfImage::Relocation& relocation : image.relocations()) {
    if (relocation.type == kRelocNone) continue;
    std::uint64_t symbol = 0;
    if (hsa_status_t s = resolve(image, object, relocation.symbol, &symbol, error); s != HSA_STATUS_SUCCESS)
      return s;
    const std::uint64_t place = object.delta() + relocation.offset;
    const std::uint64_t value = symbol + static_cast<std::uint64_t>(relocation.addend);
    std::uint64_t word = 0;
    std::size_t bytes = 4;
    switch (relocation.type) {
      case kRelocAbs32Lo:
      case kRelocAbs32:
        word = value;
        break;
      case kRelocAbs32Hi:
        word = value >> 32;
        break;
      case kRelocAbs64:
        word = value;
        bytes = 8;
        break;
      case kRelocRel32:
      case kRelocRel32Lo:
        word = value - place;
        break;
      case kRelocRel32Hi:
        word = (value - place) >> 32;
        break;
      case kRelocRel64:
        word = value - place;
        bytes = 8;
        break;
      case kRelocRelative64:
        word = object.delta() + static_cast<std::uint64_t>(relocation.addend);
        bytes = 8;
        break;
      default:
        *error = "unknown relocation type " + std::to_string(relocation.type);
        return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
    }
    if (place < object.base || !within(place - object.base, bytes, object.size)) {
      *error = "a relocation lies outside the segments";
      return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
    }
    std::memcpy(reinterpret_cast<void*>(place), &word, bytes);
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t collect_symbols(const ElfImage& image, LoadedCodeObject* object, std::string* error) {
  for (const ElfImage::Symbol& symbol : image.dynamic_symbols()) {
    const bool visible = symbol.type == STT_OBJECT || symbol.type == STT_NOTYPE;
    if (!visible || symbol.section == SHN_UNDEF || symbol.section >= SHN_LORESERVE || symbol.name.empty())
      continue;
    if (symbol.value < object->low_address ||
        !within(symbol.value - object->low_address, symbol.size, object->size)) {
      *error = "symbol " + std::string(symbol.name) + " lies outside the segments";
      return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
    }
    const bool kernel = ends_with(symbol.name, ".kd") && symbol.size == sizeof(amd_kernel_descriptor_t);
    if (!kernel && symbol.type != STT_OBJECT) continue;
    if (object->executable->find(symbol.name, object->agent) != nullptr) {
      *error = "symbol " + std::string(symbol.name) + " is defined already";
      return HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED;
    }
    auto loaded = std::make_unique<LoadedSymbol>();
    loaded->name = symbol.name;
    loaded->kind = kernel ? HSA_SYMBOL_KIND_KERNEL : HSA_SYMBOL_KIND_VARIABLE;
    loaded->agent = object->agent;
    loaded->address = object->delta() + symbol.value;
    loaded->size = symbol.size;
    loaded->exported = symbol.binding != STB_LOCAL;
    if (const Elf64_Shdr* section = image.section(symbol.section)) {
      loaded->is_constant = (section->sh_flags & SHF_WRITE) == 0;
      // A section is aligned as its most demanding member; this one no more than its address is.
      const std::uint64_t own = symbol.value & (~symbol.value + 1);
      loaded->alignment = static_cast<std::uint32_t>(std::max<std::uint64_t>(
          1, own == 0 ? section->sh_addralign : std::min(own, section->sh_addralign)));
    }
    object->symbols.push_back(std::move(loaded));
  }
  return HSA_STATUS_SUCCESS;
}

// Functions written in assembly may have no size (Tensile's kernels have none): each reaches to the next one,
// or to the end of its segment.
void complete_sizes(const LoadedCodeObject& object, std::map<std::uint64_t, CodeRange>* functions) {
  for (auto it = functions->begin(); it != functions->end(); ++it) {
    CodeRange& range = it->second;
    if (range.size != 0) continue;
    for (const Elf64_Phdr& segment : object.segments) {
      const std::uint64_t start = object.delta() + segment.p_vaddr;
      if ((segment.p_flags & PF_X) == 0 || range.base < start || range.base >= start + segment.p_filesz)
        continue;
      range.size = start + segment.p_filesz - range.base;
    }
    if (auto next = std::next(it); next != functions->end())
      range.size = std::min(range.size, next->first - range.base);
  }
}

// Functions as the symbol table has them. A stripped object names its kernels only: what lies between them
// (functions bound locally, padding) may run too, but cannot be checked, since padding need not decode.
void collect_code(const ElfImage& image, LoadedCodeObject* object, std::vector<CodeRange>* unnamed) {
  const bool stripped = image.symbols().empty();
  std::map<std::uint64_t, CodeRange> functions;
  for (const ElfImage::Symbol& symbol : stripped ? image.dynamic_symbols() : image.symbols()) {
    if (symbol.type != STT_FUNC || symbol.section == SHN_UNDEF) continue;
    if (symbol.value < object->low_address ||
        !within(symbol.value - object->low_address, symbol.size, object->size))
      continue;
    const std::uint64_t base = object->delta() + symbol.value;
    auto [it, fresh] = functions.try_emplace(base, CodeRange{base, symbol.size, std::string(symbol.name)});
    if (!fresh && symbol.binding != STB_LOCAL) it->second.symbol = symbol.name;  // aliases: the exported name
    it->second.size = std::max(it->second.size, symbol.size);
  }
  complete_sizes(*object, &functions);
  std::erase_if(functions, [](const auto& function) { return function.second.size == 0; });
  for (const auto& [base, range] : functions) object->code.push_back(range);
  if (!stripped) return;
  for (const Elf64_Phdr& segment : object->segments) {
    if ((segment.p_flags & PF_X) == 0) continue;
    std::uint64_t at = object->delta() + segment.p_vaddr;
    const std::uint64_t end = at + segment.p_filesz;
    std::string after;
    for (auto it = functions.lower_bound(at); at < end; ++it) {
      const std::uint64_t next = it == functions.end() ? end : std::min(it->first, end);
      if (next > at)
        unnamed->push_back({at, next - at, after.empty() ? "(unnamed)" : "(unnamed, after " + after + ")"});
      if (it == functions.end()) break;
      at = it->second.base + it->second.size;
      after = it->second.symbol;
    }
  }
}

void copy_debug(const ElfImage& image, LoadedCodeObject* object) {
  auto copy = [&](const char* name) {
    auto bytes = image.section_bytes(name);
    return std::vector<unsigned char>(bytes.begin(), bytes.end());
  };
  object->debug = {copy(".debug_line"), copy(".debug_line_str"), copy(".debug_str")};
}

}  // namespace

bool is_compatible(const DeviceModel& model, std::uint32_t flags, std::string* why) {
  const std::uint32_t machine = flags & kMachineMask;
  if (machine != model.elf_machine && (machine != model.elf_generic_machine || machine == 0)) {
    const DeviceModel* const meant = model_of_machine(machine);
    char text[160];
    if (meant != nullptr) {
      std::snprintf(text, sizeof text, "it is for %s, and the device is %s", meant->name, model.name);
    } else {
      std::snprintf(text, sizeof text,
                    "it is for another processor (EF_AMDGPU_MACH 0x%03x), and the device is %s", machine,
                    model.name);
    }
    *why = text;
    return false;
  }
  if ((flags & kXnackMask) == kXnackOn) {
    *why = "it needs XNACK, and the device runs with xnack-";
    return false;
  }
  if ((flags & kSrameccMask) == kSrameccOff && std::strstr(model.isa, "sramecc+") != nullptr) {
    *why = "it needs sramecc-, and the device runs with sramecc+";
    return false;
  }
  return true;
}

hsa_status_t load_image(Runtime* rt, const ElfImage& image, LoadedCodeObject* object, std::string* error) {
  std::string why;
  if (!is_compatible(*object->agent->model, image.flags(), &why)) {
    *error = why;
    return HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS;
  }
  if (hsa_status_t s = copy_segments(rt, image, object, error); s != HSA_STATUS_SUCCESS) return s;
  if (hsa_status_t s = relocate(image, *object, error); s != HSA_STATUS_SUCCESS) return s;
  if (hsa_status_t s = collect_symbols(image, object, error); s != HSA_STATUS_SUCCESS) return s;
  std::vector<CodeRange> unnamed;
  collect_code(image, object, &unnamed);
  if (std::optional<std::string> unknown = object->agent->gpu->check_code(object->code)) {
    *error = *unknown;
    object->code.clear();
    return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
  }
  object->code.insert(object->code.end(), unnamed.begin(), unnamed.end());
  publish_segments(object);
  object->agent->gpu->load_code(object->code);
  copy_debug(image, object);
  return HSA_STATUS_SUCCESS;
}

}  // namespace kerncap::sim::rt
