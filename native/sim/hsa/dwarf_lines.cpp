#include "sim/hsa/dwarf_lines.h"

#include <cstring>
#include <optional>

namespace kerncap::sim::rt {
namespace {

// Forms, opcodes and content types: DWARF 5, sections 7.5.6 and 7.22.
enum : unsigned {
  kFormBlock2 = 3,
  kFormBlock4 = 4,
  kFormData2 = 5,
  kFormData4 = 6,
  kFormData8 = 7,
  kFormString = 8,
  kFormBlock = 9,
  kFormBlock1 = 10,
  kFormData1 = 11,
  kFormStrp = 14,
  kFormUdata = 15,
  kFormData16 = 0x1e,
  kFormLineStrp = 0x1f
};
enum : unsigned { kContentPath = 1, kContentDirectory = 2 };
enum : unsigned {
  kCopy = 1,
  kAdvancePc = 2,
  kAdvanceLine = 3,
  kSetFile = 4,
  kSetColumn = 5,
  kNegateStatement = 6,
  kBasicBlock = 7,
  kConstAddPc = 8,
  kFixedAdvancePc = 9,
  kPrologueEnd = 10,
  kEpilogueBegin = 11,
  kSetIsa = 12
};
enum : unsigned { kEndSequence = 1, kSetAddress = 2 };

// Reads past the end give zeros and set `bad`.
class Cursor {
 public:
  explicit Cursor(std::span<const unsigned char> bytes) : bytes_(bytes) {}

  template <typename T>
  T get() {
    T value{};
    if (bytes_.size() - at_ < sizeof(T)) {
      bad = true;
      at_ = bytes_.size();
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = get<unsigned char>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0 || bad) return value;
    }
  }
  std::int64_t sleb() {
    std::uint64_t value = 0;
    unsigned shift = 0;
    unsigned char byte = 0;
    do {
      byte = get<unsigned char>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      shift += 7;
    } while ((byte & 0x80) != 0 && !bad);
    if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
    return static_cast<std::int64_t>(value);
  }
  std::string text() {
    std::string out;
    while (!bad)
      if (char c = get<char>(); c != '\0')
        out += c;
      else
        break;
    return out;
  }
  void skip(std::uint64_t count) {
    if (bytes_.size() - at_ < count) bad = true;
    at_ = bad ? bytes_.size() : at_ + count;
  }
  Cursor take(std::uint64_t count) {
    const std::size_t start = at_;
    skip(count);
    return Cursor(bad ? std::span<const unsigned char>() : bytes_.subspan(start, count));
  }
  [[nodiscard]] bool at_end() const { return at_ >= bytes_.size(); }

  bool bad = false;

 private:
  std::span<const unsigned char> bytes_;
  std::size_t at_ = 0;
};

std::string text_at(const std::vector<unsigned char>& section, std::uint64_t offset) {
  if (offset >= section.size()) return {};
  return Cursor(std::span(section).subspan(offset)).text();
}

struct File {
  std::string name;
  std::uint64_t directory = 0;
};

struct Unit {
  std::uint16_t version = 0;
  std::uint8_t min_length = 1;
  std::int8_t line_base = 0;
  std::uint8_t line_range = 1;
  std::uint8_t opcode_base = 10;
  std::vector<std::uint8_t> operand_counts;
  std::vector<std::string> directories;
  std::vector<File> files;

  [[nodiscard]] std::string path(std::uint64_t file) const {
    if (version < 5) {
      if (file == 0) return {};
      --file;
    }
    if (file >= files.size()) return {};
    const File& f = files[file];
    if (f.name.empty() || f.name.front() == '/') return f.name;
    std::uint64_t directory = f.directory;
    if (version < 5) {
      if (directory == 0) return f.name;
      --directory;
    }
    return directory < directories.size() ? directories[directory] + "/" + f.name : f.name;
  }
};

void read_entry_v5(Cursor& in, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& format,
                   const DebugSections& sections, File* out) {
  for (auto [content, form] : format) {
    std::string text;
    std::uint64_t number = 0;
    switch (form) {
      case kFormString:
        text = in.text();
        break;
      case kFormLineStrp:
        text = text_at(sections.line_str, in.get<std::uint32_t>());
        break;
      case kFormStrp:
        text = text_at(sections.str, in.get<std::uint32_t>());
        break;
      case kFormUdata:
        number = in.uleb();
        break;
      case kFormData1:
        number = in.get<std::uint8_t>();
        break;
      case kFormData2:
        number = in.get<std::uint16_t>();
        break;
      case kFormData4:
        number = in.get<std::uint32_t>();
        break;
      case kFormData8:
        number = in.get<std::uint64_t>();
        break;
      case kFormData16:
        in.skip(16);
        break;
      case kFormBlock:
        in.skip(in.uleb());
        break;
      case kFormBlock1:
        in.skip(in.get<std::uint8_t>());
        break;
      case kFormBlock2:
        in.skip(in.get<std::uint16_t>());
        break;
      case kFormBlock4:
        in.skip(in.get<std::uint32_t>());
        break;
      default:
        in.bad = true;
        return;
    }
    if (content == kContentPath) out->name = std::move(text);
    if (content == kContentDirectory) out->directory = number;
  }
}

void read_tables_v5(Cursor& in, const DebugSections& sections, Unit* unit) {
  for (int table = 0; table < 2; ++table) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> format(in.get<std::uint8_t>());
    for (auto& [content, form] : format) {
      content = in.uleb();
      form = in.uleb();
    }
    const std::uint64_t count = in.uleb();
    for (std::uint64_t i = 0; i < count && !in.bad; ++i) {
      File entry;
      read_entry_v5(in, format, sections, &entry);
      if (table == 0)
        unit->directories.push_back(std::move(entry.name));
      else
        unit->files.push_back(std::move(entry));
    }
  }
}

void read_tables_v4(Cursor& in, Unit* unit) {
  for (std::string name = in.text(); !name.empty() && !in.bad; name = in.text())
    unit->directories.push_back(std::move(name));
  for (std::string name = in.text(); !name.empty() && !in.bad; name = in.text()) {
    File file{std::move(name), in.uleb()};
    in.uleb();  // time
    in.uleb();  // length
    unit->files.push_back(std::move(file));
  }
}

// Runs the line program (section 6.2.5); the row that covers `wanted`, if any.
std::optional<std::pair<std::uint64_t, std::uint64_t>> run_program(Cursor program, const Unit& unit,
                                                                   std::uint64_t wanted) {
  struct Row {
    std::uint64_t address = 0, file = 1, line = 1;
  } row, last;
  bool have_last = false;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> found;
  auto emit = [&](bool end) {
    if (have_last && last.address <= wanted && wanted < row.address) found.emplace(last.file, last.line);
    last = row;
    have_last = !end;
  };
  while (!program.at_end() && !program.bad && !found) {
    const unsigned opcode = program.get<std::uint8_t>();
    if (opcode >= unit.opcode_base) {
      const unsigned adjusted = opcode - unit.opcode_base;
      row.address += std::uint64_t{adjusted / unit.line_range} * unit.min_length;
      row.line += static_cast<std::uint64_t>(unit.line_base + static_cast<int>(adjusted % unit.line_range));
      emit(false);
      continue;
    }
    switch (opcode) {
      case 0: {
        Cursor extended = program.take(program.uleb());
        const unsigned kind = extended.get<std::uint8_t>();
        if (kind == kSetAddress) row.address = extended.get<std::uint64_t>();
        if (kind == kEndSequence) {
          emit(true);
          row = {};
        }
        break;
      }
      case kCopy:
        emit(false);
        break;
      case kAdvancePc:
        row.address += program.uleb() * unit.min_length;
        break;
      case kAdvanceLine:
        row.line += static_cast<std::uint64_t>(program.sleb());
        break;
      case kSetFile:
        row.file = program.uleb();
        break;
      case kSetColumn:
      case kSetIsa:
        program.uleb();
        break;
      case kConstAddPc:
        row.address += std::uint64_t{(255u - unit.opcode_base) / unit.line_range} * unit.min_length;
        break;
      case kFixedAdvancePc:
        row.address += program.get<std::uint16_t>();
        break;
      case kNegateStatement:
      case kBasicBlock:
      case kPrologueEnd:
      case kEpilogueBegin:
        break;
      default:
        for (unsigned i = 0; opcode - 1 < unit.operand_counts.size() && i < unit.operand_counts[opcode - 1];
             ++i)
          program.uleb();
    }
  }
  return found;
}

}  // namespace

std::string find_source_line(const DebugSections& sections, std::uint64_t address) {
  Cursor all{std::span(sections.line)};
  while (!all.at_end() && !all.bad) {
    const auto length = all.get<std::uint32_t>();
    if (length >= 0xfffffff0) return {};  // 64-bit DWARF: compilers for GPUs do not write it
    Cursor in = all.take(length);
    Unit unit;
    unit.version = in.get<std::uint16_t>();
    if (unit.version < 2 || unit.version > 5) continue;
    if (unit.version >= 5) in.skip(2);  // address and segment selector sizes
    Cursor header = in.take(in.get<std::uint32_t>());
    unit.min_length = header.get<std::uint8_t>();
    if (unit.version >= 4) header.skip(1);  // operations an instruction
    header.skip(1);                         // is_stmt
    unit.line_base = header.get<std::int8_t>();
    unit.line_range = std::max<std::uint8_t>(1, header.get<std::uint8_t>());
    unit.opcode_base = header.get<std::uint8_t>();
    for (unsigned i = 1; i < unit.opcode_base; ++i) unit.operand_counts.push_back(header.get<std::uint8_t>());
    if (unit.version >= 5)
      read_tables_v5(header, sections, &unit);
    else
      read_tables_v4(header, &unit);
    if (in.bad || header.bad) continue;
    if (auto row = run_program(in, unit, address)) {
      std::string path = unit.path(row->first);
      return path.empty() ? std::string() : path + ":" + std::to_string(row->second);
    }
  }
  return {};
}

}  // namespace kerncap::sim::rt
