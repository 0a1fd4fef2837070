#include "sim/hip/code_object.h"

#include <elf.h>

#include <cstring>

#include "sim/hip/msgpack.h"

namespace kerncap::sim::hip {
namespace {

constexpr std::string_view kBundleMagic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::uint32_t kNoteMetadata = 32;  // NT_AMDGPU_METADATA
constexpr std::size_t kUnknown = SIZE_MAX / 2;

template <typename T>
bool read_at(std::string_view bytes, std::size_t offset, T& out) {
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return true;
}

bool is_elf(std::string_view bytes) {
  return bytes.size() > sizeof(Elf64_Ehdr) && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0 &&
         bytes[EI_CLASS] == ELFCLASS64;
}

// The end of the last thing an ELF file holds: its section headers, or a section or segment after them.
std::size_t elf_length(std::string_view bytes) {
  Elf64_Ehdr header;
  if (!read_at(bytes, 0, header)) return 0;
  std::size_t end = header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!read_at(bytes, header.e_shoff + std::size_t{i} * header.e_shentsize, section)) return 0;
    if (section.sh_type != SHT_NOBITS) end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(bytes, header.e_phoff + std::size_t{i} * header.e_phentsize, segment)) return 0;
    end = std::max<std::size_t>(end, segment.p_offset + segment.p_filesz);
  }
  return end;
}

// "hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-" is for arch "gfx942".
bool entry_is_for(std::string_view id, const std::string& arch) {
  if (!id.starts_with("hip")) return false;
  const std::size_t at = id.rfind("--");
  if (at == std::string_view::npos) return false;
  const std::string_view target = id.substr(at + 2);
  return target.substr(0, target.find(':')) == arch;
}

std::string_view from_bundle(std::string_view bytes, const std::string& arch) {
  std::uint64_t count = 0;
  std::size_t at = kBundleMagic.size();
  if (!read_at(bytes, at, count)) return {};
  at += 8;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t fields[3];  // offset, size, length of the id
    if (!read_at(bytes, at, fields)) return {};
    at += sizeof(fields);
    if (at > bytes.size() || fields[2] > bytes.size() - at) return {};
    const std::string_view id = bytes.substr(at, fields[2]);
    at += fields[2];
    if (!entry_is_for(id, arch)) continue;
    if (fields[0] > bytes.size() || fields[1] > bytes.size() - fields[0]) return {};
    return bytes.substr(fields[0], fields[1]);
  }
  return {};
}

std::optional<MsgValue> metadata(std::string_view elf) {
  Elf64_Ehdr header;
  if (!is_elf(elf) || !read_at(elf, 0, header)) return std::nullopt;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(elf, header.e_phoff + std::size_t{i} * header.e_phentsize, segment)) return std::nullopt;
    if (segment.p_type != PT_NOTE) continue;
    std::size_t at = segment.p_offset;
    const std::size_t end = segment.p_offset + segment.p_filesz;
    Elf64_Nhdr note;
    while (at + sizeof(note) <= end && read_at(elf, at, note)) {
      const std::size_t name = at + sizeof(note);
      const std::size_t text = name + ((note.n_namesz + 3U) & ~3U);
      if (text > elf.size() || note.n_descsz > elf.size() - text) return std::nullopt;
      if (note.n_type == kNoteMetadata && elf.substr(name, 6) == "AMDGPU") {
        return parse_msgpack(elf.substr(text, note.n_descsz));
      }
      at = text + ((note.n_descsz + 3U) & ~3U);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view find_code_object(std::string_view image, const std::string& arch) {
  std::string_view found = image;
  if (image.size() >= kBundleMagic.size() && image.substr(0, kBundleMagic.size()) == kBundleMagic) {
    found = from_bundle(image, arch);
  }
  if (!is_elf(found)) return {};
  const std::size_t length = elf_length(found);
  return length == 0 || length > found.size() ? std::string_view{} : found.substr(0, length);
}

std::string_view find_code_object(const void* image, const std::string& arch) {
  return find_code_object(std::string_view(static_cast<const char*>(image), kUnknown), arch);
}

std::optional<std::map<std::string, KernelLayout>> read_kernels(std::string_view code_object) {
  const auto document = metadata(code_object);
  if (!document) return std::nullopt;
  const MsgValue* list = document->find("amdhsa.kernels");
  std::map<std::string, KernelLayout> kernels;
  if (list == nullptr) return kernels;
  for (const MsgValue& entry : list->array) {
    KernelLayout layout;
    layout.descriptor = entry.string(".symbol");
    layout.kernarg_bytes = static_cast<std::uint32_t>(entry.number(".kernarg_segment_size", 0));
    layout.max_block = static_cast<std::uint32_t>(entry.number(".max_flat_workgroup_size", 0));
    if (const MsgValue* arguments = entry.find(".args")) {
      for (const MsgValue& argument : arguments->array) {
        layout.arguments.push_back({static_cast<std::uint32_t>(argument.number(".offset", 0)),
                                    static_cast<std::uint32_t>(argument.number(".size", 0)),
                                    std::string(argument.string(".value_kind"))});
      }
    }
    kernels.emplace(entry.string(".name"), std::move(layout));
  }
  return kernels;
}

}  // namespace kerncap::sim::hip
