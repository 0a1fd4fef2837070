#include "sim/device/memory_port.h"

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>

#include "sim/isa/wave.h"

namespace kerncap::sim {

bool MemoryPort::covers_slow(std::uint64_t lo, std::uint64_t hi, bool write) {
  const std::uint64_t generation = space_->generation();
  if (generation != generation_) {
    for (Window& w : windows_) w = Window{};
    generation_ = generation;
  }
  for (unsigned n = 0; n < kWindows; ++n) {
    const Window w = windows_[n];
    if (lo < w.base || hi - w.base > w.size) continue;
    if (write && !w.writable) return false;
    for (unsigned k = n; k > 0; --k) windows_[k] = windows_[k - 1];
    windows_[0] = w;
    return true;
  }
  const auto found = space_->find(lo);
  if (!found || hi > found->end() || hi < lo) return false;
  for (unsigned k = kWindows - 1; k > 0; --k) windows_[k] = windows_[k - 1];
  windows_[0] = {found->base, found->end() - found->base, found->writable};
  return !write || found->writable;
}

void MemoryPort::refuse(std::uint64_t address, unsigned bytes, bool write, int lane) const {
  const auto found = space_->find(address);
  const bool read_only = write && found && address + bytes <= found->end();
  throw isa::Trouble{read_only ? Fault::Kind::write_to_read_only
                     : write   ? Fault::Kind::memory_write
                               : Fault::Kind::memory_read,
                     lane,
                     address,
                     bytes,
                     {}};
}

// ---- WriteLog

struct WriteLog::Page {
  std::array<std::uint64_t, (1u << kPageBits) / 64> bits{};
};
struct WriteLog::Pages {
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> by_number;
};

WriteLog::WriteLog() : pages_(std::make_unique<Pages>()) {}
WriteLog::~WriteLog() = default;
WriteLog::WriteLog(WriteLog&&) noexcept = default;
WriteLog& WriteLog::operator=(WriteLog&&) noexcept = default;

WriteLog::Page* WriteLog::page(std::uint64_t number) {
  if (number == last_number_) return last_;
  auto& slot = pages_->by_number[number];
  if (!slot) slot = std::make_unique<Page>();
  last_number_ = number;
  last_ = slot.get();
  return last_;
}

void WriteLog::record(std::uint64_t address, std::uint64_t bytes) {
  while (bytes > 0) {
    Page* p = page(address >> kPageBits);
    const unsigned first = static_cast<unsigned>(address & ((1u << kPageBits) - 1));
    const unsigned count = static_cast<unsigned>(std::min<std::uint64_t>(bytes, (1u << kPageBits) - first));
    for (unsigned done = 0; done < count;) {
      const unsigned bit = (first + done) % 64, run = std::min(64 - bit, count - done);
      const std::uint64_t mask = run == 64 ? ~0ull : ((1ull << run) - 1) << bit;
      p->bits[(first + done) / 64] |= mask;
      done += run;
    }
    address += count;
    bytes -= count;
  }
}

void WriteLog::merge_from(const WriteLog& other) {
  for (const auto& [number, from] : other.pages_->by_number) {
    Page* to = page(number);
    for (std::size_t n = 0; n < to->bits.size(); ++n) to->bits[n] |= from->bits[n];
  }
}

std::vector<WrittenRange> WriteLog::ranges() const {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(pages_->by_number.size());
  for (const auto& entry : pages_->by_number) numbers.push_back(entry.first);
  std::sort(numbers.begin(), numbers.end());
  std::vector<WrittenRange> out;
  const auto add = [&out](std::uint64_t base, std::uint64_t size) {
    if (!out.empty() && out.back().base + out.back().size == base)
      out.back().size += size;
    else
      out.push_back({base, size});
  };
  for (const std::uint64_t number : numbers) {
    const Page& page = *pages_->by_number.at(number);
    for (std::size_t n = 0; n < page.bits.size(); ++n) {
      const std::uint64_t base = (number << kPageBits) + 64 * n;
      std::uint64_t word = page.bits[n];
      for (unsigned at = 0; word != 0;) {
        const auto skip = static_cast<unsigned>(__builtin_ctzll(word));
        word >>= skip;
        at += skip;
        const unsigned run = word == ~0ull ? 64 : static_cast<unsigned>(__builtin_ctzll(~word));
        add(base + at, run);
        word = run == 64 ? 0 : word >> run;
        at += run;
      }
    }
  }
  return out;
}

}  // namespace kerncap::sim
