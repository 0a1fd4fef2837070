// The part of a session that asks whether a kernel uses words that point into the captured code object.
#include <cstring>

#include "replay/error.h"
#include "replay/reserve.h"
#include "replay/session.h"

namespace kerncap::replay {
namespace {

// Address bits that are altered. The low 4 stay: kernels keep marks there. Those above 47 stay as well: a
// kernel that masks them, or tells by them whether there is an address at all, then does what it did.
constexpr std::uint64_t kLowBits = 0x5a5a'a5a0;
constexpr unsigned kHighBits[] = {46, 45, 44, 43, 42};  // the first that leads nowhere
constexpr std::uint64_t kWindow = 1ULL << 32;           // kLowBits moves an address within one

}  // namespace

std::uint64_t Session::nowhere() const {
  const Range& code = memory_.code();
  for (const unsigned bit : kHighBits) {
    const std::uint64_t high = 1ULL << bit;
    bool free = true;
    for (std::uint64_t at = code.base / kWindow * kWindow; at <= code.end(); at += kWindow) {
      free = free && mapped_there({at ^ high, kWindow}) == kNothingThere;
    }
    if (free) return high | kLowBits;
  }
  return 0;
}

std::uint64_t Session::alter_code_pointers(unsigned number, bool alter) {
  if (memory_.code_pointer_count() != memory_.code_pointers().size()) return 0;
  if (alter) nowhere_ = nowhere();
  if (nowhere_ == 0) return 0;
  const Variant& variant = at(number);
  std::vector<CodePointer> pointers = memory_.code_pointers();
  const std::vector<CodePointer>& guessed = variant.module->guessed();
  pointers.insert(pointers.end(), guessed.begin(), guessed.end());
  std::uint64_t words = 0;
  std::vector<Range> altered;
  // Words may overlap, where they are not aligned: each takes what the one before has left.
  for (const CodePointer& pointer : pointers) {
    if (pointer.live == 0) continue;
    unsigned char now[8], here[8], there[8];
    const std::uint64_t elsewhere = pointer.value ^ nowhere_;
    std::memcpy(here, &pointer.value, sizeof(here));
    std::memcpy(there, &elsewhere, sizeof(there));
    memory_.read(pointer.live, now, sizeof(now));
    bool any = false;
    for (std::size_t i = 0; i < sizeof(now); ++i) {
      // What the kernel has stored meanwhile stays, byte for byte.
      if (here[i] == there[i] || now[i] != (alter ? here : there)[i]) continue;
      now[i] = (alter ? there : here)[i];
      any = true;
    }
    if (!any) continue;
    memory_.write(pointer.live, now, sizeof(now));
    altered.push_back({pointer.at, sizeof(now)});
    ++words;
  }
  dirty_.unite(RangeSet(std::move(altered)));
  if (capture_.cuda_launch || variant.kernargs == nullptr) return words;
  auto* const arguments = static_cast<unsigned char*>(variant.kernargs);
  for (std::uint64_t i = 0; i + 8 <= variant.kernarg_bytes; i += 4) {
    std::uint64_t word = 0;
    std::memcpy(&word, arguments + i, sizeof(word));
    const std::uint64_t pointer = alter ? word : word ^ nowhere_;
    if (pointer - memory_.code().base > memory_.code().bytes) continue;
    word ^= nowhere_;
    std::memcpy(arguments + i, &word, sizeof(word));
    ++words;
  }
  return words;
}

}  // namespace kerncap::replay
