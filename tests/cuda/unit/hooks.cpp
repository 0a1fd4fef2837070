// Which beginnings of functions can be moved, and functions that are hooked.
#include <initializer_list>
#include <string>
#include <vector>

#include "interpose/cuda/hook.h"
#include "interpose/cuda/movable_code.h"
#include "unit/check.h"

using kerncap::interpose::cuda::Hook;
using kerncap::interpose::cuda::install;
using kerncap::interpose::cuda::landing_pad;
using kerncap::interpose::cuda::movable_bytes;

namespace {

// Of code that goes on with nops.
std::size_t movable(std::initializer_list<int> begins) {
  std::vector<unsigned char> code(begins.begin(), begins.end());
  code.resize(code.size() + 24, 0x90);
  return movable_bytes(code, 5);
}

}  // namespace

TEST(beginnings_of_driver_580) {
  // push rbp; mov rbp, rsp; push r12; sub rsp, 8; cmp dword [rip + x], imm32; je
  const std::vector<unsigned char> code = {0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x48, 0x83,
                                           0xec, 0x08, 0x81, 0x3d, 0x10, 0x20, 0x30, 0x00,
                                           0xba, 0x1c, 0x32, 0x0f, 0x0f, 0x84, 1,    2};
  EXPECT_EQ(landing_pad(code), std::size_t{0});
  EXPECT_EQ(movable_bytes(code, 5), std::size_t{6});
  EXPECT_EQ(movable_bytes(code, 7), std::size_t{10});
  EXPECT_EQ(movable_bytes(code, 11), std::size_t{0});  // the comparison is relative to rip
}

TEST(beginnings_that_compilers_make) {
  EXPECT_EQ(movable({0x41, 0x57, 0x41, 0x56, 0x41, 0x55}), std::size_t{6});   // push r15, r14, r13
  EXPECT_EQ(movable({0x53, 0x48, 0x83, 0xec, 0x20}), std::size_t{5});         // push rbx; sub rsp, 32
  EXPECT_EQ(movable({0x48, 0x81, 0xec, 0x88, 0, 0, 0}), std::size_t{7});      // sub rsp, 136
  EXPECT_EQ(movable({0x48, 0x89, 0x5c, 0x24, 0xf8}), std::size_t{5});         // mov [rsp - 8], rbx
  EXPECT_EQ(movable({0x48, 0x8b, 0x84, 0x24, 8, 1, 0, 0}), std::size_t{8});   // mov rax, [rsp + 264]
  EXPECT_EQ(movable({0x4c, 0x8d, 0x54, 0x24, 0x08}), std::size_t{5});         // lea r10, [rsp + 8]
  EXPECT_EQ(movable({0x48, 0x83, 0xe4, 0xf0, 0x50}), std::size_t{5});         // and rsp, -16; push rax
  EXPECT_EQ(movable({0x31, 0xc0, 0x49, 0x89, 0xe2}), std::size_t{5});         // xor eax, eax; mov r10, rsp
  EXPECT_EQ(movable({0x48, 0x85, 0xff, 0x85, 0xf6}), std::size_t{5});         // test rdi, rdi; test esi, esi
  EXPECT_EQ(movable({0xb8, 1, 2, 3, 4}), std::size_t{5});                     // mov eax, imm32
  EXPECT_EQ(movable({0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}), std::size_t{10});  // mov rax, imm64
  EXPECT_EQ(movable({0x48, 0xc7, 0xc0, 1, 0, 0, 0}), std::size_t{7});         // mov rax, imm32
  EXPECT_EQ(movable({0xc7, 0x44, 0x24, 4, 1, 0, 0, 0}), std::size_t{8});      // mov dword [rsp + 4], imm32
  EXPECT_EQ(movable({0x83, 0x3c, 0x25, 0, 0x10, 0, 0, 7}), std::size_t{8});   // cmp dword [0x1000], 7
  EXPECT_EQ(movable({0x0f, 0x1f, 0x44, 0, 0}), std::size_t{5});               // nop
  EXPECT_EQ(movable({0x66, 0x0f, 0x1f, 0x44, 0, 0}), std::size_t{6});         // nop
  EXPECT_EQ(movable({0x66, 0x90, 0x0f, 0xb6, 0xff}), std::size_t{5});         // nop; movzx edi, dil
  EXPECT_EQ(movable({0x0f, 0x29, 0x44, 0x24, 0x10}), std::size_t{5});         // movaps [rsp + 16], xmm0
}

TEST(a_landing_pad_stays_where_it_is) {
  const std::vector<unsigned char> code = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x53, 0x90};
  EXPECT_EQ(landing_pad(code), std::size_t{4});
  EXPECT_EQ(movable_bytes(std::span(code).subspan(4), 5), std::size_t{5});
  EXPECT_EQ(movable_bytes(code, 5), std::size_t{0});
}

TEST(what_refers_to_its_own_address_or_is_not_known_is_refused) {
  const std::vector<std::vector<unsigned char>> refused = {
      {0xe9, 1, 2, 3, 4},                          // jmp: another tool's hook
      {0xeb, 5},                                   // jmp short
      {0xff, 0x25, 1, 2, 3, 4},                    // jmp [rip + x]
      {0xe8, 1, 2, 3, 4},                          // call
      {0x55, 0xe8, 1, 2, 3, 4},                    // push rbp; call
      {0x74, 5},                                   // je
      {0x0f, 0x84, 1, 2, 3, 4},                    // je
      {0xe3, 5},                                   // jrcxz
      {0x48, 0x8d, 0x05, 1, 2, 3, 4},              // lea rax, [rip + x]
      {0x48, 0x8b, 0x05, 1, 2, 3, 4},              // mov rax, [rip + x]
      {0x81, 0x3d, 1, 2, 3, 4, 5, 6, 7, 8},        // cmp dword [rip + x], imm32
      {0xc6, 0x05, 1, 2, 3, 4, 5},                 // mov byte [rip + x], imm8
      {0x0f, 0x10, 0x05, 1, 2, 3, 4},              // movups xmm0, [rip + x]
      {0xc3},                                      // ret: a function shorter than the jump
      {0x55, 0x5d, 0xc3},                          // push rbp; pop rbp; ret
      {0xcc},                                      // int3
      {0xc7, 0xf8, 1, 2, 3, 4},                    // xbegin
      {0x66, 0x81, 0xec, 8, 0, 0x55},              // sub sp, imm16
      {0x67, 0x8d, 0x05, 1, 2, 3, 4},              // lea eax, [eip + x]
      {0xf0, 0x01, 0x07, 0x55, 0x55},              // lock add
      {0x64, 0x48, 0x8b, 4, 0x25, 0x28, 0, 0, 0},  // mov rax, fs:[40]
      {0xc5, 0xf8, 0x77, 0x55, 0x55},              // vzeroupper
      {0x0f, 0x05, 0x55, 0x55, 0x55},              // syscall
  };
  for (const std::vector<unsigned char>& code : refused) {
    std::vector<unsigned char> longer = code;
    longer.resize(code.size() + 24, 0x90);
    EXPECT_EQ(movable_bytes(longer, 5), std::size_t{0});
  }
}

TEST(code_that_ends_within_an_instruction_is_refused) {
  const std::vector<unsigned char> code = {0x48, 0x81, 0xec, 0x88, 0, 0, 0};
  for (std::size_t bytes = 0; bytes < code.size(); ++bytes)
    EXPECT_EQ(movable_bytes(std::span(code).first(bytes), 5), std::size_t{0});
  EXPECT_EQ(movable_bytes(code, 5), std::size_t{7});
}

#if defined(__x86_64__)

// Sums of eight arguments, of which two are on the stack; `with_pad` begins with endbr64, `refused` with a
// comparison relative to rip, `short_one` is over before a jump would be.
asm(R"(
.text
.balign 16
plain:
  push %rbp
  mov %rsp, %rbp
  push %r12
  sub $8, %rsp
  lea (%rdi, %rsi), %rax
  add %rdx, %rax
  add %rcx, %rax
  add %r8, %rax
  add %r9, %rax
  add 16(%rbp), %rax
  add 24(%rbp), %rax
  add $8, %rsp
  pop %r12
  pop %rbp
  ret
.balign 16
with_pad:
  endbr64
  sub $24, %rsp
  push %rbx
  lea (%rdi, %rsi), %rax
  pop %rbx
  add $24, %rsp
  ret
.balign 16
refused:
  cmpl $7, plain(%rip)
  lea (%rdi, %rsi), %rax
  ret
.balign 16
short_one:
  mov %rdi, %rax
  ret
.balign 16
)");

using Eight = long (*)(long, long, long, long, long, long, long, long);
using Two = long (*)(long, long);
extern "C" {
long plain(long, long, long, long, long, long, long, long);
long with_pad(long, long);
long refused(long, long);
long short_one(long, long);
}

namespace {

void *plain_original, *pad_original, *other_original;
long more_of_eight(long a, long b, long c, long d, long e, long f, long g, long h) {
  return 1000 + reinterpret_cast<Eight>(plain_original)(a, b, c, d, e, f, g, h);
}
long more_of_two(long a, long b) { return 1000 + reinterpret_cast<Two>(pad_original)(a, b); }
long other(long, long) { return -1; }

std::vector<unsigned char> bytes_of(const void* function) {
  const auto* begin = static_cast<const unsigned char*>(function);
  return {begin, begin + 16};
}
template <typename F>
void* address(F* function) {
  return reinterpret_cast<void*>(function);
}
// The compiler must not know what it calls.
template <typename F>
F* hidden(F* function) {
  asm volatile("" : "+r"(function));
  return function;
}

}  // namespace

TEST(functions_are_hooked_all_or_none) {
  std::string why;
  const std::vector<unsigned char> before = bytes_of(address(&plain));
  for (void* bad : {address(&refused), address(&short_one)}) {
    const Hook hooks[] = {{address(&plain), address(&more_of_eight), &plain_original},
                          {bad, address(&other), &other_original}};
    EXPECT_EQ(install(hooks, &why), false);
    EXPECT_EQ(why, std::string("it begins with instructions that cannot be moved"));
  }
  std::vector<unsigned char> data(64, 0x90);
  const Hook in_data[] = {{address(&plain), address(&more_of_eight), &plain_original},
                          {data.data(), address(&other), &other_original}};
  EXPECT_EQ(install(in_data, &why), false);
  EXPECT_EQ(why, std::string("its code lies in memory that is no plain code"));
  EXPECT_EQ(bytes_of(address(&plain)) == before, true);
  EXPECT_EQ(hidden(&plain)(1, 2, 3, 4, 5, 6, 7, 8), 36L);

  const Hook hooks[] = {{address(&plain), address(&more_of_eight), &plain_original},
                        {address(&with_pad), address(&more_of_two), &pad_original}};
  EXPECT_EQ(install(hooks, &why), true);
  EXPECT_EQ(hidden(&plain)(1, 2, 3, 4, 5, 6, 7, 8), 1036L);
  EXPECT_EQ(hidden(&with_pad)(1, 2), 1003L);
  const std::vector<unsigned char> pad = bytes_of(address(&with_pad));
  EXPECT_EQ(landing_pad(pad), std::size_t{4});
  EXPECT_EQ(static_cast<int>(pad[4]), 0xe9);

  // What is hooked already begins with a jump.
  EXPECT_EQ(install(hooks, &why), false);
  EXPECT_EQ(hidden(&plain)(1, 2, 3, 4, 5, 6, 7, 8), 1036L);
}

TEST(hooked_code_is_not_left_writable) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  bool found = false;
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long begin = 0, end = 0;
    char access[8] = {};
    if (std::sscanf(line, "%lx-%lx %4s", &begin, &end, access) != 3) continue;
    const auto place = reinterpret_cast<unsigned long>(&plain);
    const auto moved = reinterpret_cast<unsigned long>(plain_original);
    if ((begin <= place && place < end) || (begin <= moved && moved < end)) {
      EXPECT_EQ(std::string(access), std::string("r-xp"));
      found = true;
    }
  }
  std::fclose(maps);
  EXPECT_EQ(found, true);
}

#endif
