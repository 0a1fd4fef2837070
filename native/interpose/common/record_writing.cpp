#include "interpose/common/record_writing.h"

#include <time.h>
#include <unistd.h>

#include "snapshot/records.h"

namespace kerncap::interpose {

using snapshot::RecordType;

namespace {

std::string link_target(const char* path) {
  char text[4096];
  const ssize_t n = ::readlink(path, text, sizeof text);
  return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : std::string();
}

}  // namespace

void write_process(snapshot::CaptureWriter& writer, const std::string& runtime) {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::string executable = link_target("/proc/self/exe"), directory = link_target("/proc/self/cwd");
  snapshot::ProcessRecord record{};
  record.realtime_ns =
      static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
  record.pid = static_cast<std::uint32_t>(::getpid());
  record.executable_length = length(executable);
  record.directory_length = length(directory);
  record.runtime_length = length(runtime);
  writer.add(record, RecordType::process, {executable, directory, runtime});
}

void write_variable(snapshot::CaptureWriter& writer, std::uint32_t code_object, const std::string& name,
                    std::uint64_t address, std::uint64_t bytes) {
  snapshot::VariableRecord record{};
  record.code_object = code_object;
  record.name_length = length(name);
  record.address = address;
  record.bytes = bytes;
  writer.add(record, RecordType::variable, {name});
}

void write_regions(snapshot::CaptureWriter& writer, const MemoryImage& image,
                   const std::function<std::uint32_t(std::uint32_t)>& record_id) {
  for (const ImageRegion* region : image.image()) {
    snapshot::RegionRecord record{};
    record.id = region->id;
    record.kind = region->source.kind;
    record.address = region->source.address;
    record.bytes = region->source.bytes;
    record.pre_offset = region->pre_offset;
    record.flags = (region->unsaved.empty() ? snapshot::kSaved : 0u) |
                   (region->reachable ? snapshot::kReachable : 0u) |
                   (region->written ? snapshot::kWritten : 0u);
    record.code_object = record_id(region->code_object);
    record.pool_flags = region->source.pool_flags;
    record.reason_length = length(region->unsaved);
    writer.add(record, RecordType::region, {region->unsaved});
  }
}

}  // namespace kerncap::interpose
