// kerncap-sim-run: runs kernels of a code object on the simulated GPU, from a script on stdin; no runtime
// involved. One command a line, one line of answer each ("ok ...", "fault ..." or "error ..."):
//
//   load FILE                   map a code object and check its code; the first says for which GPU
//   alloc NAME BYTES [@FILE]    allocate zeroed memory, or fill it from a file
//   symbol NAME VARIABLE        use a module variable as memory NAME
//   fill NAME @FILE             fill memory from a file
//   pointer NAME OFFSET TARGET  store the address of memory TARGET in NAME
//   kernarg TYPE VALUE ...      ptr NAME, u8 ... u64, i32, i64, f32, f64: each aligned to its size; hex BYTES
//   hidden OFFSET               the next launches write the hidden arguments (code object v5) there
//   launch KERNEL GX GY GZ BX BY BZ DYNLDS    grid in work-items; kernels by their symbol without ".kd"
//   stack BYTES                 private memory of a work-item in later launches, at least
//   dump NAME FILE              write memory to a file
//   writes on|off               report the written ranges with each launch
//   schedule SEED               the order of workgroups in later launches
//   threads N | deterministic | limit WAVE_INSTRUCTIONS | seconds S    before the first load
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "sim/device/tools/code_object.h"

namespace kerncap::sim::tools {
namespace {

struct Buffer {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

class Session {
 public:
  std::string run(std::istringstream& line, const std::string& command) {
    if (command == "load") return load(line);
    if (command == "alloc") return alloc(line);
    if (command == "symbol") return symbol(line);
    if (command == "fill") return fill(line);
    if (command == "pointer") return pointer(line);
    if (command == "kernarg") return kernarg(line);
    if (command == "hidden") return (line >> hidden_) ? "ok" : throw std::runtime_error("hidden OFFSET");
    if (command == "launch") return launch(line);
    if (command == "stack") return (line >> stack_) ? "ok" : throw std::runtime_error("stack BYTES");
    if (command == "dump") return dump(line);
    if (command == "writes") {
      std::string word;
      line >> word;
      writes_ = word == "on";
      return "ok";
    }
    if (command == "threads") return (line >> config_.threads) ? "ok" : throw std::runtime_error("threads N");
    if (command == "deterministic") {
      config_.deterministic = true;
      return "ok";
    }
    if (command == "limit")
      return (line >> config_.max_wave_instructions) ? "ok" : throw std::runtime_error("limit N");
    if (command == "seconds")
      return (line >> config_.max_seconds) ? "ok" : throw std::runtime_error("seconds S");
    if (command == "schedule") {
      std::uint64_t seed = 0;
      line >> seed;
      gpu().set_schedule(seed);
      return "ok";
    }
    throw std::runtime_error("no such command: " + command);
  }

 private:
  Gpu& gpu() {
    if (!gpu_) gpu_ = std::make_unique<Gpu>(config_, memory_);
    return *gpu_;
  }
  const Buffer& buffer(const std::string& name) {
    const auto found = buffers_.find(name);
    if (found == buffers_.end()) throw std::runtime_error("no memory is named " + name);
    return found->second;
  }
  Symbol symbol_of(const std::string& name) {
    for (const auto& object : objects_) {
      const auto found = object->symbols().find(name);
      if (found != object->symbols().end()) return found->second;
    }
    throw std::runtime_error("no loaded code object has a symbol " + name);
  }

  std::string load(std::istringstream& line) {
    std::string path;
    line >> path;
    objects_.push_back(std::make_unique<CodeObject>(path, &memory_));
    const auto arch = objects_.back()->arch();
    if (!arch || (gpu_ && *arch != config_.arch)) throw std::runtime_error(path + " is for another GPU");
    config_.arch = *arch;
    const auto code = objects_.back()->code();
    const auto problem = gpu().check_code(code);
    gpu().load_code(code);
    return problem ? "error " + *problem : "ok functions=" + std::to_string(code.size());
  }

  std::string alloc(std::istringstream& line) {
    std::string name, from;
    std::uint64_t bytes = 0;
    if (!(line >> name >> bytes)) throw std::runtime_error("alloc NAME BYTES [@FILE]");
    void* p =
        mmap(nullptr, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::runtime_error("cannot allocate " + std::to_string(bytes) + " bytes");
    buffers_[name] = {reinterpret_cast<std::uint64_t>(p), bytes};
    memory_.add({reinterpret_cast<std::uint64_t>(p), bytes, true, "device"});
    if (line >> from) read_file(from, buffers_[name]);
    char text[64];
    std::snprintf(text, sizeof text, "ok address=0x%llx",
                  static_cast<unsigned long long>(buffers_[name].address));
    return text;
  }

  std::string symbol(std::istringstream& line) {
    std::string name, variable;
    if (!(line >> name >> variable)) throw std::runtime_error("symbol NAME VARIABLE");
    const Symbol found = symbol_of(variable);
    buffers_[name] = {found.address, found.size};
    return "ok bytes=" + std::to_string(found.size);
  }

  static void read_file(const std::string& from, const Buffer& to) {
    std::ifstream in(from.substr(1), std::ios::binary);
    if (!in || from[0] != '@') throw std::runtime_error("cannot open " + from);
    in.read(reinterpret_cast<char*>(to.address), static_cast<std::streamsize>(to.bytes));
  }

  std::string fill(std::istringstream& line) {
    std::string name, from;
    if (!(line >> name >> from)) throw std::runtime_error("fill NAME @FILE");
    read_file(from, buffer(name));
    return "ok";
  }

  std::string pointer(std::istringstream& line) {
    std::string name, target;
    std::uint64_t offset = 0;
    if (!(line >> name >> offset >> target)) throw std::runtime_error("pointer NAME OFFSET TARGET");
    const Buffer& in = buffer(name);
    if (offset + 8 > in.bytes) throw std::runtime_error("no room for a pointer there in " + name);
    const std::uint64_t address = buffer(target).address;
    std::memcpy(reinterpret_cast<void*>(in.address + offset), &address, sizeof address);
    return "ok";
  }

  template <class T>
  void push(T value) {
    while (kernarg_.size() % sizeof(T) != 0) kernarg_.push_back(0);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
    kernarg_.insert(kernarg_.end(), bytes, bytes + sizeof value);
  }

  std::string kernarg(std::istringstream& line) {
    kernarg_.clear();
    std::string type, value;
    while (line >> type >> value) {
      if (type == "ptr")
        push<std::uint64_t>(buffer(value).address);
      else if (type == "u8")
        push(static_cast<std::uint8_t>(std::stoul(value, nullptr, 0)));
      else if (type == "u16")
        push(static_cast<std::uint16_t>(std::stoul(value, nullptr, 0)));
      else if (type == "u32")
        push(static_cast<std::uint32_t>(std::stoull(value, nullptr, 0)));
      else if (type == "i32")
        push(static_cast<std::int32_t>(std::stoll(value, nullptr, 0)));
      else if (type == "u64")
        push(static_cast<std::uint64_t>(std::stoull(value, nullptr, 0)));
      else if (type == "i64")
        push(static_cast<std::int64_t>(std::stoll(value, nullptr, 0)));
      else if (type == "f32")
        push(std::stof(value));
      else if (type == "f64")
        push(std::stod(value));
      else if (type == "hex")
        for (std::size_t n = 0; n + 1 < value.size(); n += 2)
          kernarg_.push_back(static_cast<std::uint8_t>(std::stoul(value.substr(n, 2), nullptr, 16)));
      else
        throw std::runtime_error("no such kernarg type: " + type);
    }
    return "ok bytes=" + std::to_string(kernarg_.size());
  }

  template <class T>
  static void put(std::vector<std::uint8_t>& bytes, std::size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
  }

  std::string launch(std::istringstream& line) {
    std::string kernel;
    std::uint32_t grid[3], block[3], dynamic = 0;
    if (!(line >> kernel >> grid[0] >> grid[1] >> grid[2] >> block[0] >> block[1] >> block[2] >> dynamic))
      throw std::runtime_error("launch KERNEL GX GY GZ BX BY BZ DYNLDS");
    const Symbol descriptor = symbol_of(kernel + ".kd");
    std::uint32_t fixed[2];
    std::memcpy(fixed, reinterpret_cast<const void*>(descriptor.address), sizeof fixed);

    // Kernel arguments in memory of their own, with the 256 bytes of hidden arguments of code object v5.
    std::vector<std::uint8_t> arguments = kernarg_;
    const std::size_t hidden =
        hidden_ >= 0 ? static_cast<std::size_t>(hidden_) : (arguments.size() + 7) & ~7ull;
    arguments.resize(std::max(arguments.size(), hidden + 256));
    for (unsigned d = 0; d < 3; ++d) {
      put(arguments, hidden + 4 * d, grid[d] / block[d]);
      put(arguments, hidden + 12 + 2 * d, static_cast<std::uint16_t>(block[d]));
      put(arguments, hidden + 18 + 2 * d, static_cast<std::uint16_t>(grid[d] % block[d]));
    }
    const unsigned dimensions = grid[2] > 1 ? 3 : grid[1] > 1 ? 2 : 1;
    put(arguments, hidden + 64, static_cast<std::uint16_t>(dimensions));
    put(arguments, hidden + 120, dynamic);
    put(arguments, hidden + 192, 0x20000u);
    put(arguments, hidden + 196, 0x10000u);
    alignas(64) std::uint8_t packet[64] = {};
    const auto set = [&packet](std::size_t offset, auto value) {
      std::memcpy(packet + offset, &value, sizeof value);
    };
    set(0, static_cast<std::uint16_t>(2));
    set(2, static_cast<std::uint16_t>(3));
    for (unsigned d = 0; d < 3; ++d) {
      set(4 + 2 * d, static_cast<std::uint16_t>(block[d]));
      set(12 + 4 * d, grid[d]);
    }
    set(24, std::max(fixed[1], stack_));
    set(28, fixed[0] + dynamic);
    set(32, descriptor.address);
    set(40, reinterpret_cast<std::uint64_t>(arguments.data()));
    const Allocation kernargs{reinterpret_cast<std::uint64_t>(arguments.data()), arguments.size(), false,
                              "kernarg"};
    const Allocation queue{reinterpret_cast<std::uint64_t>(packet), sizeof packet, false, "queue"};
    if (!memory_.add(kernargs) || !memory_.add(queue))
      throw std::runtime_error("kernel arguments overlap other memory");
    std::vector<WrittenRange> written;
    const DispatchOutcome outcome =
        gpu().run(packet, queue.base, queue.base, 1, writes_ ? &written : nullptr, nullptr);
    memory_.remove(kernargs.base);
    memory_.remove(queue.base);
    if (outcome.fault) return "fault " + outcome.fault->to_string();
    std::string answer = "ok cycles=" + std::to_string(outcome.cycles) +
                         " insts=" + std::to_string(outcome.wave_instructions) +
                         " waves=" + std::to_string(outcome.waves);
    if (writes_) {
      answer += " written=";
      for (const WrittenRange& range : written) {
        char text[48];
        std::snprintf(text, sizeof text, "%s0x%llx+%llu", &range == written.data() ? "" : ",",
                      static_cast<unsigned long long>(range.base),
                      static_cast<unsigned long long>(range.size));
        answer += text;
      }
    }
    return answer;
  }

  std::string dump(std::istringstream& line) {
    std::string name, path;
    if (!(line >> name >> path)) throw std::runtime_error("dump NAME FILE");
    const Buffer& from = buffer(name);
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(from.address), static_cast<std::streamsize>(from.bytes));
    if (!out.flush()) throw std::runtime_error("cannot write " + path);
    return "ok bytes=" + std::to_string(from.bytes);
  }

  GpuConfig config_;
  AddressSpace memory_;
  std::unique_ptr<Gpu> gpu_;
  std::vector<std::unique_ptr<CodeObject>> objects_;
  std::map<std::string, Buffer> buffers_;
  std::vector<std::uint8_t> kernarg_;
  std::int64_t hidden_ = -1;
  bool writes_ = false;
  std::uint32_t stack_ = 0;
};

}  // namespace
}  // namespace kerncap::sim::tools

int main() {
  kerncap::sim::tools::Session session;
  bool failed = false;
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    std::string command;
    if (!(line >> command) || command[0] == '#') continue;
    std::string answer;
    try {
      answer = session.run(line, command);
    } catch (const std::exception& e) {
      answer = std::string("error ") + e.what();
    }
    failed = failed || answer.rfind("ok", 0) != 0;
    std::cout << answer << std::endl;
  }
  return failed ? 1 : 0;
}
