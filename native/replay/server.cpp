#include "replay/server.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "replay/error.h"
#include "snapshot/error.h"

namespace kerncap::replay {
namespace {

constexpr std::size_t kMaxRanges = 4096;
constexpr std::size_t kNamedPointers = 16;

std::vector<unsigned char> from_hex(const std::string& text) {
  if (text.size() % 2 != 0) throw ReplayError(ErrorClass::usage, "an odd number of hexadecimal digits");
  std::vector<unsigned char> out(text.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<unsigned char>(std::strtoul(text.substr(2 * i, 2).c_str(), nullptr, 16));
  }
  return out;
}

unsigned variant_of(const Request& request, std::size_t i) {
  return static_cast<unsigned>(request.number(i));
}

void send_ranges(Channel& channel, const RangeSet& set) {
  const auto& ranges = set.ranges();
  channel.data("ranges", ranges.data(), std::min(ranges.size(), kMaxRanges) * sizeof(Range));
}

std::string size_of(const RangeSet& set) {
  return "bytes=" + std::to_string(set.bytes()) + " ranges=" + std::to_string(set.ranges().size());
}

RangeSet where(Session& session, const Request& request) {
  if (request.text(0) == "written") return session.written_set();
  if (request.text(0) == "changed") return session.changed_blocks();
  return session.region_range(static_cast<std::uint32_t>(request.number(0)));
}

void load(Channel& channel, Session& session, const Request& r) {
  std::optional<Shape> shape;
  if (r.arguments.size() > 5) {
    shape = Shape{{r.number(5), r.number(6), r.number(7)}, r.number(8)};
    if (r.arguments.size() > 9) shape->cluster = r.number(9);
  }
  const unsigned variant = session.load(r.text(0), r.text(1), static_cast<std::uint32_t>(r.number(2)),
                                        static_cast<std::uint32_t>(r.number(3)), from_hex(r.text(4)), shape);
  const Module& module = session.module(variant);
  for (const std::string& name : module.unmatched()) channel.note("unmatched", name);
  std::ostringstream out;
  out << "variant=" << variant << " base=" << hex(module.base())
      << " kernarg_bytes=" << module.kernarg_bytes() << " static_group=" << module.static_group_bytes()
      << " static_private=" << module.static_private_bytes()
      << " unmatched_bytes=" << module.unmatched_bytes() << " guessed_pointers=" << module.guessed().size();
  channel.ok(out.str());
}

void run(Channel& channel, Session& session, const Request& r) {
  RunRequest request;
  request.variant = variant_of(r, 0);
  request.count = r.number(1);
  request.cold = !r.choice(2, "warm", "cold");
  request.batch = r.number(3);
  request.track = r.choice(4, "track", "time");
  request.restore = r.choice(5, "restore", "over");
  request.limit_seconds = r.real(6);
  const std::vector<DispatchTime> times = session.run(request);
  std::vector<std::uint64_t> own, system;
  for (const DispatchTime& time : times) {
    own.insert(own.end(), {time.start_ns, time.end_ns});
    system.insert(system.end(), {time.submitted_ns, time.seen_ns});
  }
  channel.data("times", own.data(), own.size() * sizeof(std::uint64_t));
  channel.data("events", system.data(), system.size() * sizeof(std::uint64_t));
  channel.ok("count=" + std::to_string(times.size()) +
             " device_bytes=" + std::to_string(session.device_bytes()));
}

void compare(Channel& channel, Session& session, const Request& r) {
  const Against against = r.choice(0, "application", "reference") ? Against::application : Against::reference;
  const bool written_only = r.choice(1, "written", "all");
  const auto start = std::chrono::steady_clock::now();
  const CompareResult result =
      session.compare(against, written_only, r.text(3), r.number(4), variant_of(r, 2));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  channel.data("runs", result.runs.data(), result.runs.size() * sizeof(DiffRun));
  std::vector<std::uint64_t> scopes;
  for (const auto& [region, bytes] : result.compared_in) scopes.insert(scopes.end(), {region, bytes});
  channel.data("compared", scopes.data(), scopes.size() * sizeof(std::uint64_t));
  channel.ok("compared=" + std::to_string(result.compared) + " different=" +
             std::to_string(result.different) + " seconds=" + std::to_string(seconds.count()));
}

void written(Channel& channel, Session& session, const Request& r) {
  const RangeSet& mine = session.written(variant_of(r, 0));
  RangeSet set = mine;
  if (r.command == "outside") set = mine.minus(session.written_set());
  if (r.command == "missing") set = session.written_set().minus(mine);
  send_ranges(channel, set);
  channel.ok(size_of(set));
}

void answer(Channel& channel, Session& session, const Request& r) {
  if (r.command == "load") return load(channel, session, r);
  if (r.command == "run") return run(channel, session, r);
  if (r.command == "compare") return compare(channel, session, r);
  if (r.command == "written" || r.command == "outside" || r.command == "missing") {
    return written(channel, session, r);
  }
  if (r.command == "empty") return channel.ok("variant=" + std::to_string(session.load_empty()));
  if (r.command == "restore") {
    session.restore(!r.choice(0, "changed", "full"));
    return channel.ok();
  }
  if (r.command == "allow") {
    session.allow(variant_of(r, 0));
    return channel.ok(size_of(session.written_set()));
  }
  if (r.command == "set") {
    const RangeSet set = session.written_set();
    send_ranges(channel, set);
    return channel.ok(size_of(set) + " silent=" + std::to_string(session.silent_bytes(variant_of(r, 0))));
  }
  if (r.command == "poison") {
    const bool everything = r.arguments.size() > 2 && r.choice(2, "all", "silent");
    const std::uint64_t granule = std::max<std::uint64_t>(1, r.number(1));
    return channel.ok("bytes=" + std::to_string(session.poison(where(session, r), granule, everything)));
  }
  if (r.command == "pointers") {
    const bool alter = r.choice(0, "alter", "back");
    const std::uint64_t words = session.alter_code_pointers(variant_of(r, 1), alter);
    return channel.ok("words=" + std::to_string(words));
  }
  if (r.command == "keep")
    return channel.ok("bytes=" + std::to_string(session.keep(where(session, r), variant_of(r, 1))));
  if (r.command == "idempotent") {
    return channel.ok(session.idempotent(variant_of(r, 0), r.real(1)) ? "same=1" : "same=0");
  }
  if (r.command == "schedule") {
    session.schedule(r.number(0));
    return channel.ok();
  }
  if (r.command == "dump") {
    std::string names;
    for (const std::string& name : session.dump(r.text(0))) names += name + "\n";
    channel.data("files", names.data(), names.size());
    return channel.ok();
  }
  if (r.command == "memcmp") {
    session.restore(false);
    std::uint64_t bytes = 0;
    const double seconds = session.memcmp_pass(&bytes);
    return channel.ok("bytes=" + std::to_string(bytes) + " seconds=" + std::to_string(seconds));
  }
  throw ReplayError(ErrorClass::usage, "there is no command '" + r.command + "'");
}

}  // namespace

int serve(Channel& channel, Session& session) {
  Request request;
  while (channel.read(&request)) {
    if (request.command == "quit") break;
    try {
      answer(channel, session, request);
    } catch (const ReplayError& error) {
      channel.error(error_class_name(error.kind()), error.address(), error.what());
      const bool over = error.kind() == ErrorClass::fault || error.kind() == ErrorClass::timeout;
      if (over) return 1;
    } catch (const snapshot::DamagedCapture& error) {
      channel.error("damaged", 0, error.what());
    } catch (const snapshot::IoError& error) {
      channel.error("device", 0, error.what());
    }
  }
  return 0;
}

void greet(Channel& channel, const Session& session, const snapshot::CaptureReader& capture) {
  const ReplayMemory& memory = session.memory();
  const std::vector<CodePointer>& pointers = memory.code_pointers();
  for (std::size_t i = 0; i < std::min(pointers.size(), kNamedPointers); ++i) {
    channel.note("code_pointer", hex(pointers[i].at) + " " + hex(pointers[i].value));
  }
  for (const snapshot::Region& region : capture.regions) {
    const bool reachable = (region.record.flags & snapshot::kReachable) != 0;
    if (reachable && (region.record.flags & snapshot::kSaved) == 0) {
      channel.note("unsaved", std::to_string(region.record.id) + " " + region.reason);
    }
  }
  std::uint64_t bytes = 0;
  for (const Piece& piece : memory.pieces()) bytes += piece.bytes;
  std::ostringstream out;
  out << "device=" << escape(session.agent().name) << " isa=" << escape(session.agent().isa)
      << " product=" << escape(session.agent().product) << " simulated=" << session.runtime().sim.present()
      << " tracks_writes=" << session.tracks_writes() << " runtime=" << escape(session.runtime().path)
      << " lds=" << session.agent().lds_bytes << " max_workgroup=" << session.agent().max_workgroup
      << " cache_bytes=" << session.agent().cache_bytes << " regions=" << memory.pieces().size()
      << " bytes=" << bytes << " restore_s=" << session.restore_seconds()
      << " changed_bytes=" << memory.changed_bytes() << " code_pointers=" << memory.code_pointer_count()
      << " displaced_bytes=" << memory.displaced_bytes() << " layouts=" << layout_attempt() + 1
      << " timer=" << session.timer() << " queue=" << hex(session.queue_address());
  channel.ok(out.str());
}

}  // namespace kerncap::replay
