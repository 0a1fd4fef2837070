#include "replay/cuda/block_hash.h"

#include <string>

#include "replay/error.h"
#include "snapshot/records.h"
#include "snapshot/xxh64.h"

namespace kerncap::replay {
namespace {

using namespace abi;  // NOLINT: the ABI's own names

// Four threads a block, one for each of XXH64's lanes (xxHash fast digest algorithm, "Step 2. Process
// stripes"): together they read 32 neighbouring bytes. Each leaves its accumulator; the host merges them.
constexpr char kPtx[] = R"ptx(.version 6.0
.target sm_50
.address_size 64
.visible .entry kerncap_xxh64_lanes(.param .u64 addresses, .param .u64 lanes, .param .u32 count)
{
  .reg .pred %p<6>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<32>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  shr.u32 %r5, %r4, 2;
  and.b32 %r6, %r4, 3;
  ld.param.u32 %r7, [count];
  setp.ge.u32 %p1, %r5, %r7;
  @%p1 bra END;
  ld.param.u64 %rd1, [addresses];
  mul.wide.u32 %rd2, %r5, 8;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.u64 %rd3, [%rd1];
  mul.wide.u32 %rd2, %r6, 8;
  add.u64 %rd3, %rd3, %rd2;
  mov.u64 %rd4, 0x60EA27EEADC0B5D6;
  setp.eq.u32 %p2, %r6, 1;
  @%p2 mov.u64 %rd4, 0xC2B2AE3D27D4EB4F;
  setp.eq.u32 %p3, %r6, 2;
  @%p3 mov.u64 %rd4, 0;
  setp.eq.u32 %p4, %r6, 3;
  @%p4 mov.u64 %rd4, 0x61C8864E7A143579;
  mov.u64 %rd5, 0xC2B2AE3D27D4EB4F;
  mov.u64 %rd6, 0x9E3779B185EBCA87;
  mov.u32 %r8, 4096;
LOOP:
  ld.global.u64 %rd10, [%rd3];
  ld.global.u64 %rd11, [%rd3+32];
  ld.global.u64 %rd12, [%rd3+64];
  ld.global.u64 %rd13, [%rd3+96];
  ld.global.u64 %rd14, [%rd3+128];
  ld.global.u64 %rd15, [%rd3+160];
  ld.global.u64 %rd16, [%rd3+192];
  ld.global.u64 %rd17, [%rd3+224];
)ptx";

// One step on %rd4 with the word in a register.
std::string step(int word) {
  const std::string w = "%rd" + std::to_string(word);
  return "  mad.lo.u64 %rd4, " + w +
         ", %rd5, %rd4;\n"
         "  shl.b64 %rd20, %rd4, 31;\n"
         "  shr.u64 %rd21, %rd4, 33;\n"
         "  or.b64 %rd4, %rd20, %rd21;\n"
         "  mul.lo.u64 %rd4, %rd4, %rd6;\n";
}

constexpr char kPtxEnd[] = R"ptx(  add.u64 %rd3, %rd3, 256;
  sub.u32 %r8, %r8, 1;
  setp.ne.u32 %p5, %r8, 0;
  @%p5 bra LOOP;
  ld.param.u64 %rd22, [lanes];
  mul.wide.u32 %rd23, %r4, 8;
  add.u64 %rd22, %rd22, %rd23;
  st.global.u64 [%rd22], %rd4;
END:
  ret;
}
)ptx";
static_assert(snapshot::kChecksumBlock == 4096 * 256, "the loop's count");

CUfunction compiled(const Runtime& runtime) {
  static CUfunction function = [&]() -> CUfunction {
    std::string text = kPtx;
    for (int word = 10; word < 18; ++word) text += step(word);
    text += kPtxEnd;
    CUmodule module = nullptr;
    CUfunction found = nullptr;
    if (runtime.cuda.cuModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr) != CUDA_SUCCESS)
      return nullptr;
    if (runtime.cuda.cuModuleGetFunction(&found, module, kHashKernel) != CUDA_SUCCESS) return nullptr;
    return found;
  }();
  return function;
}

}  // namespace

std::vector<std::uint64_t> hash_blocks(const Runtime& runtime, const std::vector<std::uint64_t>& addresses) {
  const CudaDriver& cuda = runtime.cuda;
  CUfunction function = compiled(runtime);
  const std::uint64_t count = addresses.size();
  if (function == nullptr || count == 0) return {};
  CUdeviceptr buffer = 0;  // addresses, then lanes
  if (cuda.cuMemAlloc(&buffer, count * 40) != CUDA_SUCCESS) return {};
  CUdeviceptr lanes_at = buffer + count * 8;
  auto number = static_cast<std::uint32_t>(count);
  void* parameters[] = {&buffer, &lanes_at, &number};
  constexpr unsigned kThreads = 128;
  const auto groups = static_cast<unsigned>((count * 4 + kThreads - 1) / kThreads);
  std::vector<std::uint64_t> lanes(count * 4);
  CUresult result = cuda.cuMemcpyHtoD(buffer, addresses.data(), count * 8);
  if (result == CUDA_SUCCESS) {
    result =
        cuda.cuLaunchKernel(function, groups, 1, 1, kThreads, 1, 1, 0, runtime.stream, parameters, nullptr);
  }
  if (result == CUDA_SUCCESS) result = cuda.cuStreamSynchronize(runtime.stream);
  if (result == CUDA_SUCCESS) result = cuda.cuMemcpyDtoH(lanes.data(), lanes_at, lanes.size() * 8);
  cuda.cuMemFree(buffer);
  runtime.check(result, "hashing device memory");
  std::vector<std::uint64_t> hashes(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t of_block[4] = {lanes[4 * i], lanes[4 * i + 1], lanes[4 * i + 2], lanes[4 * i + 3]};
    hashes[i] = snapshot::xxh64_of_lanes(of_block, snapshot::kChecksumBlock);
  }
  return hashes;
}

}  // namespace kerncap::replay
