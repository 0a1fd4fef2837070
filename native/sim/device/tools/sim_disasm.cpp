// kerncap-sim-disasm ARCH: reads lines of hexadecimal bytes (one instruction each) from stdin and prints the
// disassembly of each, or "error". `kerncap-sim-disasm ARCH FILE` disassembles all functions of a code
// object; `kerncap-sim-disasm ARCH --opcodes` lists every opcode, and whether it is executed.
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/device/tools/code_object.h"
#include "sim/isa/execute.h"

using namespace kerncap::sim;  // a test program

int main(int argc, char** argv) {
  const auto arch = argc >= 2 ? parse_arch(argv[1]) : std::nullopt;
  if (!arch || isa::opcode_table(*arch) == nullptr) {
    std::fprintf(stderr, "usage: kerncap-sim-disasm gfx942|gfx90a [FILE|--opcodes]\n");
    return 2;
  }
  std::size_t length = 0;
  if (argc == 3 && std::string(argv[2]) == "--opcodes") {
    for (const isa::Opcode& opcode : isa::opcode_table(*arch)->all())
      std::printf("%s %u %s %s\n", isa::encoding_name(opcode.encoding), opcode.number, opcode.mnemonic,
                  isa::handlers().by_name.count(opcode.mnemonic) != 0 ? "executed" : "decoded");
    return 0;
  }
  if (argc == 3) {
    AddressSpace memory;
    const tools::CodeObject object(argv[2], &memory);
    for (const CodeRange& range : object.code()) {
      std::printf("%s:\n", range.symbol.c_str());
      for (std::uint64_t at = 0; at < range.size; at += length == 0 ? 4 : length) {
        const std::string text =
            disassemble(*arch, reinterpret_cast<const void*>(range.base + at), range.size - at, &length);
        std::printf("\t%s\n", length == 0 ? ".long 0" : text.c_str());
      }
    }
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::uint8_t> bytes;
    for (std::size_t n = 0; n + 1 < line.size(); n += 2)
      bytes.push_back(static_cast<std::uint8_t>(std::stoul(line.substr(n, 2), nullptr, 16)));
    const std::string text = disassemble(*arch, bytes.data(), bytes.size(), &length);
    std::printf("%zu %s\n", length, length == 0 ? "error" : text.c_str());
  }
  return 0;
}
