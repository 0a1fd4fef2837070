// The statistics file, and the tracking of allocations and code.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "check.h"
#include "interpose/common/code_store.h"
#include "interpose/hsa/allocations.h"
#include "live/control_file.h"
#include "live/live_file.h"
#include "snapshot/xxh64.h"

using namespace kerncap;             // NOLINT
using namespace kerncap::interpose;  // NOLINT

TEST(rows_and_names_grow_with_the_file) {
  const test::Scratch scratch;
  std::string warning;
  const auto file = live::LiveFile::create(scratch.path(), &warning);
  EXPECT(warning.empty());
  const std::string long_name(5000, 'x');
  for (std::uint32_t i = 1; i <= 3000; ++i) {
    const std::string name = long_name + std::to_string(i);
    live::NewRow row;
    row.id = i;
    row.name = name;
    row.demangled = "short";
    EXPECT_EQ(file->add_row(row), i);
    if (i % 500 == 0) file->reserve_ahead();
  }
  EXPECT_EQ(file->header().row_count.load(), 3000u);
  // As a reader sees it: by the bytes on the disk.
  std::ifstream in(file->path(), std::ios::binary);
  live::Row row;
  in.seekg(static_cast<std::streamoff>(live::kRowsOffset + 3000 * live::kRowBytes));
  in.read(reinterpret_cast<char*>(&row), sizeof row);
  EXPECT_EQ(row.id, std::uint64_t{3000});
  std::string name(row.name_length, ' ');
  in.seekg(static_cast<std::streamoff>(live::kNamesOffset + row.name_offset));
  in.read(name.data(), static_cast<std::streamsize>(name.size()));
  EXPECT_EQ(name, long_name + "3000");
}

TEST(the_last_row_is_row_zero) {
  const test::Scratch scratch;
  std::string warning;
  const auto file = live::LiveFile::create(scratch.path(), &warning);
  live::NewRow row;
  for (std::uint32_t i = 1; i < live::kMaxRows; ++i) {
    if (file->add_row(row) != i) test::fail(__FILE__, __LINE__, "row " + std::to_string(i));
  }
  EXPECT_EQ(file->add_row(row), 0u);
}

TEST(durations_are_summed_exactly_from_several_threads) {
  const test::Scratch scratch;
  std::string warning;
  const auto file = live::LiveFile::create(scratch.path(), &warning);
  live::Row& row = file->row(file->add_row({}));
  const auto add = [&row](std::uint64_t from) {
    for (std::uint64_t ns = from; ns <= 20000; ns += 2) live::count_time(row, ns, ns + 7);
  };
  std::thread odd(add, 1), even(add, 2);
  odd.join();
  even.join();
  EXPECT_EQ(row.timed.load(), std::uint64_t{20000});
  EXPECT_EQ(row.total_ns.load(), std::uint64_t{20000} * 20001 / 2);
  EXPECT_EQ(row.min_ns.load(), std::uint64_t{1});
  EXPECT_EQ(row.max_ns.load(), std::uint64_t{20000});
  EXPECT_EQ(row.slowest.load(), 20007u);
  EXPECT_EQ(row.histogram[0].load(), 1u);  // 1
  EXPECT_EQ(row.histogram[1].load(), 2u);  // 2, 3
  EXPECT_EQ(row.histogram[13].load(), 8192u);
  EXPECT_EQ(row.histogram[14].load(), 20000u - 16383u);
}

TEST(an_unwritable_session_still_counts) {
  std::string warning;
  const auto file = live::LiveFile::create("/nonexistent/session", &warning);
  EXPECT(warning.find("/nonexistent/session") != std::string::npos);
  live::NewRow row;
  row.name = "k";
  EXPECT_EQ(file->add_row(row), 1u);
  live::count_time(file->row(1), 5);
  EXPECT_EQ(file->row(1).total_ns.load(), std::uint64_t{5});
}

TEST(without_memory_for_its_rows_a_process_is_not_watched) {
  const test::Scratch scratch;
  std::string warning;
  live::Control control{};
  rlimit before;
  ::getrlimit(RLIMIT_AS, &before);
  const rlimit small{1 << 20, before.rlim_max};
  ::setrlimit(RLIMIT_AS, &small);
  const auto file = live::LiveFile::create(scratch.path(), &warning, &control);
  ::setrlimit(RLIMIT_AS, &before);
  EXPECT(file == nullptr);
  EXPECT(warning.find(scratch.path() + "/") != std::string::npos);
  EXPECT(warning.find("Cannot allocate memory (the limit on memory, ulimit -v)") != std::string::npos);
  EXPECT_EQ(control.unwatched.load(), 1u);
  EXPECT_EQ(control.unwatched_error.load(), static_cast<std::uint32_t>(ENOMEM));
  EXPECT(std::filesystem::is_empty(scratch.path()));
}

TEST(a_second_file_of_one_process_has_a_name_of_its_own) {
  const test::Scratch scratch;
  std::string warning;
  const auto first = live::LiveFile::create(scratch.path(), &warning);
  const auto second = live::LiveFile::create(scratch.path(), &warning);
  EXPECT(first->path() != second->path());
  EXPECT(second->path().ends_with(".2.live"));
}

TEST(control_blocks_of_other_versions_are_refused) {
  const test::Scratch scratch;
  std::string error;
  EXPECT(live::ControlFile::open(scratch.path(), &error) == nullptr);
  EXPECT(error.find("No such file") != std::string::npos);
  const auto write = [&](std::uint32_t version, std::size_t bytes) {
    std::vector<char> block(bytes);
    live::Control control{};
    std::memcpy(control.magic, live::kControlMagic, 8);
    control.version = version;
    control.bytes = sizeof(live::Control);
    std::memcpy(block.data(), static_cast<void*>(&control), std::min(bytes, sizeof control));
    std::ofstream(scratch / "control", std::ios::binary)
        .write(block.data(), static_cast<std::streamsize>(bytes));
  };
  write(live::kVersion, 100);
  EXPECT(live::ControlFile::open(scratch.path(), &error) == nullptr);
  write(live::kVersion + 1, sizeof(live::Control));
  EXPECT(live::ControlFile::open(scratch.path(), &error) == nullptr);
  EXPECT(error.find("version 2") != std::string::npos);
  write(live::kVersion, sizeof(live::Control));
  EXPECT(live::ControlFile::open(scratch.path(), &error) != nullptr);
}

TEST(texts_are_cut_between_characters) {
  char field[6];
  live::set_text(field, sizeof field, "abcd\xc3\xa9");
  EXPECT_EQ(std::string(field), std::string("abcd"));
  live::set_text(field, sizeof field, "ab\xc3\xa9");
  EXPECT_EQ(std::string(field), std::string("ab\xc3\xa9"));
}

TEST(locks_nest_and_mappings_split) {
  const Agents agents;
  Allocations allocations(agents);
  auto* host = reinterpret_cast<void*>(0x10000);
  auto* seen = reinterpret_cast<void*>(0x90000);
  const abi::hsa_agent_t gpu{7};
  allocations.locked(host, 100, &gpu, 1, seen);
  allocations.locked(host, 100, &gpu, 1, seen);
  allocations.unlocked(host);
  EXPECT_EQ(allocations.all().size(), std::size_t{1});
  EXPECT_EQ(allocations.all()[0].address, std::uint64_t{0x90000});
  EXPECT_EQ(allocations.all()[0].host_address, std::uint64_t{0x10000});
  EXPECT(allocations.all()[0].accessible_to(7) && !allocations.all()[0].accessible_to(8));
  allocations.unlocked(host);
  EXPECT(allocations.all().empty());

  auto* va = reinterpret_cast<void*>(0x200000);
  allocations.mapped(va, 0x6000, 1);
  EXPECT(!allocations.all()[0].accessible_to(7));
  const abi::hsa_amd_memory_access_desc_t access{abi::HSA_ACCESS_PERMISSION_RW, gpu};
  allocations.vmem_access(va, 0x6000, &access, 1);
  EXPECT(allocations.all()[0].accessible_to(7));
  allocations.unmapped(reinterpret_cast<void*>(0x202000), 0x1000);
  const auto rest = allocations.all();
  EXPECT_EQ(rest.size(), std::size_t{2});
  EXPECT_EQ(rest[0].bytes, std::uint64_t{0x2000});
  EXPECT_EQ(rest[1].address, std::uint64_t{0x203000});
  EXPECT_EQ(rest[1].bytes, std::uint64_t{0x3000});
}

TEST(managed_memory_is_known_by_its_attributes) {
  const Agents agents;
  Allocations allocations(agents);
  auto* p = reinterpret_cast<void*>(0x40000);
  const abi::hsa_amd_svm_attribute_pair_t give{abi::HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE, 7};
  allocations.svm_attributes(p, 0x4000, &give, 1);
  EXPECT(allocations.all().at(0).accessible_to(7));
  const abi::hsa_amd_svm_attribute_pair_t take{abi::HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS, 7};
  allocations.svm_attributes(reinterpret_cast<void*>(0x41000), 0x1000, &take, 1);
  const auto all = allocations.all();
  EXPECT_EQ(all.size(), std::size_t{3});
  EXPECT(all[0].accessible_to(7) && !all[1].accessible_to(7) && all[2].accessible_to(7));
}

TEST(code_is_kept_by_content_and_noticed_when_it_changes) {
  const test::Scratch scratch;
  CodeStore store(scratch.path());
  std::vector<unsigned char> code(100000, 3);
  const std::uint64_t hash = store.add(code.data(), code.size());
  EXPECT_EQ(hash, snapshot::xxh64(code.data(), code.size()));
  EXPECT_EQ(store.add(code.data(), code.size()), hash);
  std::vector<unsigned char> out;
  std::string error;
  const std::vector<unsigned char> kept = code;
  std::fill(code.begin(), code.end(), std::uint8_t{0});  // the program reuses its memory
  EXPECT(store.read(hash, out, &error));
  EXPECT(out == kept);
  EXPECT(std::filesystem::is_empty(scratch.path()));  // nothing that outlives the process
  EXPECT(!store.read(hash + 1, out, &error));
}

TEST(a_forked_child_does_not_inherit_the_statistics) {
  const test::Scratch scratch;
  std::string warning;
  const auto file = live::LiveFile::create(scratch.path(), &warning);
  file->add_row({});
  // The child has no mapping of the parent's file; writing to it must not be possible by accident.
  const pid_t child = ::fork();
  if (child == 0) {
    unsigned char resident = 0;
    const bool mapped = ::mincore(&file->header(), 4096, &resident) == 0;
    ::_exit(mapped ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
