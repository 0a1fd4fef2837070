// Captures on disk: written and read again, damaged, given up.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "check.h"
#include "snapshot/capture_reader.h"
#include "snapshot/capture_writer.h"
#include "snapshot/error.h"
#include "snapshot/xxh64.h"

using namespace kerncap::snapshot;  // NOLINT

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> v(bytes);
  std::uint64_t x = seed * 0x9E3779B97F4A7C15ull + 1;
  for (auto& b : v) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    b = static_cast<unsigned char>(x);
  }
  return v;
}

void write_block(BlockFile& file, std::uint64_t index, const std::vector<unsigned char>& bytes) {
  file.write_block(index, bytes.data(), bytes.size(), xxh64(bytes.data(), bytes.size()));
}

// What each capture has, of a kernel `mul`.
void add_records(CaptureWriter& writer) {
  ProcessRecord process{};
  process.executable_length = 4;
  process.directory_length = 1;
  writer.add(process, RecordType::process, {"/a/b", "/", ""});
  DeviceRecord device{};
  device.name_length = 6;
  writer.add(device, RecordType::device, {"", "gfx942", ""});
  const std::string code = "not really an ELF";
  CodeObjectRecord object{};
  object.id = 1;
  object.content_hash = xxh64(code.data(), code.size());
  object.content_bytes = code.size();
  writer.add_code_object(object.content_hash, code.data(), code.size());
  writer.add_code_object(object.content_hash, code.data(), code.size());
  writer.add(object, RecordType::code_object, {""});
  DispatchRecord dispatch{};
  dispatch.code_object = 1;
  dispatch.symbol_length = 3;
  writer.add(dispatch, RecordType::dispatch, {"mul", ""});
  KernargRecord kernarg{};
  kernarg.length = 5;
  writer.add(kernarg, RecordType::kernarg, {"hello"});
}

// A capture with one region of 2.5 MiB, whose middle is zeros, and one change.
void write_capture(const std::string& output, bool commit = true) {
  CaptureWriter writer(output);
  write_block(writer.pre(), 0, pattern(kMiB, 1));
  write_block(writer.pre(), 1, std::vector<unsigned char>(kMiB));
  write_block(writer.pre(), 2, pattern(kMiB / 2, 2));
  add_records(writer);
  RegionRecord region{};
  region.id = 1;
  region.address = 0x10000;
  region.bytes = 2 * kMiB + kMiB / 2;
  region.flags = kSaved | kReachable | kWritten;
  writer.add(region, RecordType::region, {""});
  const std::vector<unsigned char> after = pattern(128, 3);
  writer.post().append(after.data(), after.size());
  ChangeRecord change{};
  change.region = 1;
  change.address = 0x10040;
  change.bytes = after.size();
  writer.add(change, RecordType::change);
  if (commit) writer.commit();
}

void flip(const std::string& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 0x10));
}

}  // namespace

// From the specification's own test vectors.
TEST(xxh64_is_xxh64) {
  EXPECT_EQ(xxh64("", 0), std::uint64_t{0xEF46DB3751D8E999u});
  EXPECT_EQ(xxh64("abc", 3), std::uint64_t{0x44BC2CF5AD770999u});
  const std::string text = "Nobody inspects the spammish repetition";
  EXPECT_EQ(xxh64(text.data(), text.size()), std::uint64_t{0xFBCEA83C8A378BF1u});
}

TEST(xxh64_in_pieces_is_the_same) {
  const std::vector<unsigned char> data = pattern(1000, 9);
  for (const std::size_t piece : {1u, 7u, 31u, 32u, 33u, 500u}) {
    Xxh64 hash;
    for (std::size_t at = 0; at < data.size(); at += piece)
      hash.update(data.data() + at, std::min(piece, data.size() - at));
    EXPECT_EQ(hash.digest(), xxh64(data.data(), data.size()));
  }
}

TEST(a_capture_is_read_as_it_was_written) {
  const test::Scratch scratch;
  write_capture(scratch / "out");
  EXPECT(!std::filesystem::exists(partial_path(scratch / "out", static_cast<unsigned>(::getpid()))));
  const CaptureReader reader(scratch / "out");
  EXPECT_EQ(reader.executable, std::string("/a/b"));
  EXPECT_EQ(reader.agent_name, std::string("gfx942"));
  EXPECT_EQ(reader.symbol, std::string("mul"));
  EXPECT_EQ(std::string(reader.kernarg_bytes.begin(), reader.kernarg_bytes.end()), std::string("hello"));
  EXPECT_EQ(reader.pre_bytes, 2 * kMiB + kMiB / 2);
  std::vector<unsigned char> bytes(reader.pre_bytes);
  reader.read(MemoryFile::pre, 0, bytes.size(), bytes.data());
  std::vector<unsigned char> wanted = pattern(kMiB, 1);
  wanted.resize(2 * kMiB);
  const std::vector<unsigned char> tail = pattern(kMiB / 2, 2);
  wanted.insert(wanted.end(), tail.begin(), tail.end());
  EXPECT(bytes == wanted);
  std::vector<unsigned char> middle(1000);
  reader.read(MemoryFile::pre, kMiB - 500, middle.size(), middle.data());
  EXPECT(std::memcmp(middle.data(), wanted.data() + kMiB - 500, middle.size()) == 0);
  std::vector<unsigned char> after(128);
  reader.read(MemoryFile::post, reader.changes.at(0).post_offset, after.size(), after.data());
  EXPECT(after == pattern(128, 3));
  EXPECT_EQ(reader.read_code_object(reader.code_object(1)).size(), std::size_t{17});
}

TEST(zeros_take_no_room_on_the_disk) {
  const test::Scratch scratch;
  write_capture(scratch / "out");
  struct stat info;
  EXPECT(::stat((scratch / "out/memory.pre").c_str(), &info) == 0);
  EXPECT(static_cast<std::uint64_t>(info.st_blocks) * 512 < 2 * kMiB);
}

TEST(a_repeated_block_is_written_once) {
  for (const char* files : {"1", "3"}) {
    const test::Scratch scratch;
    ::setenv("KERNCAP_MEMORY_FILES", files, 1);
    const std::vector<unsigned char> same = pattern(kMiB, 1), other = pattern(kMiB, 2);
    {
      CaptureWriter writer(scratch / "out");
      add_records(writer);
      // In stripes of their own: a block behind its source, before it, and in another file.
      for (const std::uint64_t block : {33, 2, 40, 100}) write_block(writer.pre(), block, same);
      write_block(writer.pre(), 3, other);
      write_block(writer.pre(), 101, std::vector<unsigned char>(same.begin(), same.begin() + kMiB / 2));
      for (std::uint64_t block = 0; block < 101; ++block) {
        if (block != 2 && block != 3 && block != 33 && block != 40 && block != 100)
          write_block(writer.pre(), block, std::vector<unsigned char>(kMiB));
      }
      EXPECT(writer.pre().repeats() == (Repeats{{2, 33}, {40, 33}, {100, 33}}));
      std::vector<unsigned char> back(2 * kMiB), wanted = same;
      wanted.insert(wanted.end(), other.begin(), other.end());
      writer.pre().read_back(2 * kMiB, back.data(), back.size());
      EXPECT(back == wanted);
      writer.commit();
    }
    ::unsetenv("KERNCAP_MEMORY_FILES");
    std::uint64_t stored = 0;
    for (const auto& entry : std::filesystem::directory_iterator(scratch / "out")) {
      struct stat info;
      if (entry.path().filename().string().starts_with("memory.pre") &&
          ::stat(entry.path().c_str(), &info) == 0)
        stored += static_cast<std::uint64_t>(info.st_blocks) * 512;
    }
    EXPECT(stored < 3 * kMiB);
    const CaptureReader reader(scratch / "out");
    EXPECT_EQ(reader.layout(MemoryFile::pre).stripes.files, static_cast<std::uint32_t>(files[0] - '0'));
    std::vector<unsigned char> bytes(5 * kMiB);
    for (const std::uint64_t block : {2, 33, 40, 100}) {
      reader.read(MemoryFile::pre, block * kMiB, kMiB, bytes.data());
      EXPECT(std::memcmp(bytes.data(), same.data(), kMiB) == 0);
    }
    // A run of blocks, and a range that begins in a repeat and ends in none.
    EXPECT_EQ(reader.read_blocks(MemoryFile::pre, 0, 5, bytes.data()), bytes.size());
    EXPECT(all_zero(bytes.data(), 2 * kMiB) && all_zero(bytes.data() + 4 * kMiB, kMiB));
    EXPECT(std::memcmp(bytes.data() + 2 * kMiB, same.data(), kMiB) == 0);
    EXPECT(std::memcmp(bytes.data() + 3 * kMiB, other.data(), kMiB) == 0);
    reader.read(MemoryFile::pre, 3 * kMiB - 100, 200, bytes.data());
    EXPECT(std::memcmp(bytes.data(), same.data() + kMiB - 100, 100) == 0);
    EXPECT(std::memcmp(bytes.data() + 100, other.data(), 100) == 0);
    const std::string file = files[0] == '1' ? "memory.pre" : "memory.pre.1";
    const std::uint64_t offset = (files[0] == '1' ? 33 : 1) * kMiB;
    flip((scratch / "out/") + file, offset + 9);
    EXPECT_THROWS(reader.read(MemoryFile::pre, 40 * kMiB, 1, bytes.data()), DamagedCapture,
                  file + ": the block at offset " + std::to_string(offset) + " does not match");
  }
}

TEST(a_repeated_block_of_what_a_kernel_wrote_is_written_once) {
  const test::Scratch scratch;
  const std::vector<unsigned char> same = pattern(kMiB, 1), other = pattern(kMiB, 2);
  {
    CaptureWriter writer(scratch / "out");
    add_records(writer);
    for (int i = 0; i < 3; ++i) {
      writer.post().append(same.data(), same.size());
      writer.post().append(other.data(), i == 2 ? 100 : other.size());
    }
    writer.commit();
  }
  struct stat info;
  EXPECT(::stat((scratch / "out/memory.post").c_str(), &info) == 0);
  EXPECT_EQ(static_cast<std::uint64_t>(info.st_size), 5 * kMiB + 100);
  EXPECT(static_cast<std::uint64_t>(info.st_blocks) * 512 < 3 * kMiB);
  const CaptureReader reader(scratch / "out");
  EXPECT(reader.layout(MemoryFile::post).repeats == (Repeats{{2, 0}, {3, 1}, {4, 0}}));
  EXPECT(reader.layout(MemoryFile::pre).repeats.empty());
  std::vector<unsigned char> bytes(5 * kMiB + 100);
  reader.read(MemoryFile::post, 0, bytes.size(), bytes.data());
  for (std::size_t block = 0; block < 6; ++block) {
    EXPECT(std::memcmp(bytes.data() + block * kMiB, (block % 2 == 0 ? same : other).data(),
                       block == 5 ? 100 : kMiB) == 0);
  }
}

TEST(a_block_is_a_repeat_by_its_bytes_not_by_its_hash) {
  const test::Scratch scratch;
  BlockFile file(scratch / "m", false, 8);
  const std::vector<unsigned char> one = pattern(kMiB, 1), two = pattern(kMiB, 2);
  file.write_block(0, one.data(), one.size(), 7);
  file.write_block(1, two.data(), two.size(), 7);
  file.write_block(2, one.data(), one.size(), 7);
  EXPECT(file.repeats() == (Repeats{{2, 0}}));
  std::vector<unsigned char> back(kMiB);
  file.read_back(kMiB, back.data(), back.size());
  EXPECT(back == two);
}

TEST(only_so_many_blocks_are_repeats) {
  for (const std::uint32_t most : {0u, 2u}) {
    const test::Scratch scratch;
    const std::string path = scratch / "m";
    BlockFile file(path, false, most);
    for (std::uint64_t i = 0; i < 5; ++i) write_block(file, i, pattern(kMiB, 1));
    file.finish();
    EXPECT_EQ(file.repeats().size(), std::size_t{most});
    struct stat info;
    EXPECT(::stat(path.c_str(), &info) == 0);
    EXPECT(static_cast<std::uint64_t>(info.st_blocks) * 512 >= (5 - most) * kMiB);
    std::vector<unsigned char> back(kMiB);
    for (std::uint64_t i = 0; i < 5; ++i) {
      file.read_back(i * kMiB, back.data(), back.size());
      EXPECT(back == pattern(kMiB, 1));
    }
  }
}

TEST(repeats_are_found_by_many_threads) {
  const test::Scratch scratch;
  constexpr std::uint64_t kThreads = 8, kEach = 12;
  BlockFile file(scratch / "m", false, 60);
  const std::vector<unsigned char> kinds[3] = {pattern(kMiB, 1), pattern(kMiB, 2),
                                               std::vector<unsigned char>(kMiB)};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach; ++i) write_block(file, i * kThreads + t, kinds[(i + t) % 3]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Two kinds are not zeros, 64 blocks; each thread may write one of either before it knows better.
  EXPECT(file.repeats().size() >= 64 - 2 * kThreads && file.repeats().size() <= 60);
  std::vector<unsigned char> back(kMiB);
  for (std::uint64_t i = 0; i < kThreads * kEach; ++i) {
    file.read_back(i * kMiB, back.data(), back.size());
    EXPECT(back == kinds[(i / kThreads + i % kThreads) % 3]);
  }
}

TEST(repeats_that_cannot_be_are_refused) {
  const auto refused = [](std::uint32_t file, std::vector<BlockRepeat> pairs, std::uint32_t more,
                          const char* why) {
    const test::Scratch scratch;
    {
      CaptureWriter writer(scratch / "out");
      add_records(writer);
      for (std::uint64_t i = 0; i < 3; ++i) write_block(writer.pre(), i, pattern(kMiB, 1 + (i == 2)));
      write_block(writer.pre(), 3, pattern(kMiB / 2, 1));
      RepeatsRecord record{};
      record.file = file;
      record.count = static_cast<std::uint32_t>(pairs.size()) + more;
      writer.add(record, RecordType::repeats,
                 {{reinterpret_cast<const char*>(pairs.data()), pairs.size() * sizeof(BlockRepeat)}});
      writer.commit();
    }
    EXPECT_THROWS(CaptureReader(scratch / "out"), DamagedCapture, why);
  };
  refused(0, {{3, 0}}, 0, "block 3 as a repeat of block 0, of 3 whole ones");
  refused(0, {{2, 3}}, 0, "block 2 as a repeat of block 3, of 3 whole ones");
  refused(0, {{2, 1ull << 60}}, 0, "of 3 whole ones");
  refused(0, {{2, 0}}, 0, "which has another checksum");
  refused(0, {{2, 2}}, 0, "which is one itself");
  refused(0, {{0, 1}}, 0, "which is one itself");  // block 1 is a repeat of block 0 already
  refused(0, {{1, 2}, {1, 0}}, 0, "a second time");
  refused(1, {{1, 0}}, 0, "block 1 as a repeat of block 0, of 0 whole ones");
  refused(2, {{1, 0}}, 0, "repeats of an unknown file");
  refused(0, {{1, 0}}, 1, "a list longer than its record");
}

TEST(only_the_owner_can_read_a_capture) {
  const test::Scratch scratch;
  write_capture(scratch / "out");
  for (const char* name : {"out", "out/code", "out/capture.bin", "out/memory.pre", "out/memory.post"}) {
    struct stat info;
    EXPECT(::stat((scratch / name).c_str(), &info) == 0);
    EXPECT_EQ(info.st_mode & 077u, 0u);
  }
}

TEST(a_capture_that_is_not_committed_leaves_nothing) {
  const test::Scratch scratch;
  write_capture(scratch / "out", false);
  EXPECT(std::filesystem::is_empty(scratch.path()));
}

TEST(an_existing_output_is_never_replaced) {
  const test::Scratch scratch;
  std::filesystem::create_directory(scratch / "out");
  EXPECT_THROWS(write_capture(scratch / "out"), IoError, "File exists");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()),
                          std::filesystem::directory_iterator{}),
            1);
  // Made by someone else while the capture was written.
  {
    CaptureWriter writer(scratch / "late");
    std::filesystem::create_directory(scratch / "late");
    EXPECT_THROWS(writer.commit(), IoError, "late");
  }
  EXPECT(std::filesystem::is_empty(scratch / "late"));
}

TEST(every_kind_of_damage_is_named) {
  const test::Scratch scratch;
  write_capture(scratch / "out");
  const auto damaged = [&](const char* name, auto change, const char* part, auto use) {
    std::filesystem::remove_all(scratch / "bad");
    std::filesystem::copy(scratch / "out", scratch / "bad", std::filesystem::copy_options::recursive);
    change((scratch / "bad/") + name);
    EXPECT_THROWS(use(), DamagedCapture, part);
  };
  const auto open = [&] { const CaptureReader reader(scratch / "bad"); };
  const auto read_all = [&] {
    const CaptureReader reader(scratch / "bad");
    std::vector<unsigned char> bytes(reader.pre_bytes);
    reader.read(MemoryFile::pre, 0, bytes.size(), bytes.data());
    reader.read(MemoryFile::post, 0, reader.post_bytes, bytes.data());
    static_cast<void>(reader.read_code_object(reader.code_object(1)));
  };
  const auto cut = [](const std::string& path) {
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  };
  damaged("capture.bin", cut, "capture.bin", open);
  damaged("memory.pre", cut, "memory.pre has", open);
  damaged("memory.post", cut, "memory.post has", open);
  damaged(
      "memory.pre", [](const std::string& path) { std::filesystem::remove(path); }, "memory.pre is missing",
      open);
  damaged("capture.bin", [](const std::string& path) { flip(path, 0); }, "wrong magic", open);
  damaged("capture.bin", [](const std::string& path) { flip(path, 8); }, "version", open);
  damaged("memory.pre", [](const std::string& path) { flip(path, kMiB + 5); }, "offset 1048576", read_all);
  damaged("memory.post", [](const std::string& path) { flip(path, 3); }, "memory.post", read_all);
  for (std::uint64_t at = sizeof(FileHeader); at < std::filesystem::file_size(scratch / "out/capture.bin");
       at += 13) {
    damaged("capture.bin", [&](const std::string& path) { flip(path, at); }, "checksum", open);
  }
  const std::string code = std::filesystem::directory_iterator(scratch / "out/code")->path().filename();
  damaged(("code/" + code).c_str(), [](const std::string& path) { flip(path, 2); }, "checksum", read_all);
}

TEST(a_full_disk_is_an_error_and_leaves_nothing) {
  const test::Scratch scratch;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{kMiB / 2, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROWS(write_capture(scratch / "out"), IoError, "memory.pre");
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT(std::filesystem::is_empty(scratch.path()));
}

TEST(what_was_begun_is_removed_where_no_more_files_may_be_opened) {
  const test::Scratch scratch;
  const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(lowest);
  rlimit before;
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit one{static_cast<rlim_t>(lowest) + 1, before.rlim_max};  // for memory.pre, not for memory.post
  ::setrlimit(RLIMIT_NOFILE, &one);
  EXPECT_THROWS(CaptureWriter(scratch / "out"), IoError, "memory.post: Too many open files");
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT(std::filesystem::is_empty(scratch.path()));
}
