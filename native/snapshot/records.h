// What a capture holds on disk. Written by the interposer (native/interpose), read by the
// replayer (native/replay) and by kerncap/core/capture/record_parser.py; writer and reader are in this
// folder so that they cannot drift, and the version says when old captures stop being readable.
//
// capture/
//   capture.bin    FileHeader, then records
//   memory.pre     the bytes of every saved region before the dispatch, one after the other; each region
//                  starts at a multiple of kRegionAlign; zeros are left as holes, and blocks of
//                  kChecksumBlock whose bytes another block has are not written (RepeatsRecord). Where the
//                  header says so it is several files, memory.pre, memory.pre.1, ..., dealt out in stripes
//                  (stripes.h)
//   memory.post    the bytes after the dispatch of each Change record, one after the other; holes and blocks
//                  that repeat others as in memory.pre
//   code/<16 hex>.hsaco   every code object by XXH64 of its content
//   manifest.json  made by Python: what people and scripts read; hashes of the other files
// Little-endian; every record is a multiple of 8 bytes. Strings are UTF-8 without NUL, placed after
// the fixed part in the order of their *_length fields, then padding to 8.
#pragma once

#include <cstdint>

namespace kerncap::snapshot {

inline constexpr char kMagic[8] = {'K', 'C', 'A', 'P', 'T', 'U', 'R', 'E'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint64_t kRegionAlign = 4096;
inline constexpr std::uint64_t kChecksumBlock = 1u << 20;  // memory.pre and memory.post are hashed in blocks
inline constexpr std::uint64_t kStripeBytes = 32 * kChecksumBlock;
inline constexpr std::uint32_t kMaxFiles = 64;
// Of each memory file. Each is a mapping of its own for who maps the file, and a process may have 65530
// (vm.max_map_count): memory.pre is mapped in two places, memory.post in one.
inline constexpr std::uint32_t kMostRepeats = 8192;

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t file_bytes;  // of capture.bin
  std::uint64_t pre_bytes;   // of memory.pre (apparent size), of all its files
  std::uint64_t post_bytes;
  std::uint64_t record_count;
  std::uint64_t checksum;   // XXH64, seed 0, of everything after this header
  std::uint32_t pre_files;  // how many files memory.pre is; 0 is 1
  std::uint32_t reserved;
};
static_assert(sizeof(FileHeader) == 64);

enum class RecordType : std::uint32_t {
  process = 1,
  device = 2,
  dispatch = 3,
  kernarg = 4,
  code_object = 5,
  variable = 6,
  region = 7,
  change = 8,
  checksums = 9,
  end = 10,
  cuda_launch = 11,  // only in captures of a CUDA device
  repeats = 12,      // only where there are any
};

struct RecordHeader {
  RecordType type;
  std::uint32_t bytes;  // of the whole record, this header included (large arrays: several records)
};

struct ProcessRecord {
  RecordHeader header;
  std::uint64_t realtime_ns;
  std::uint32_t pid;
  std::uint32_t executable_length;
  std::uint32_t directory_length;
  std::uint32_t runtime_length;  // "path version" of the HSA runtime
  // strings: executable, working directory, runtime
};

struct DeviceRecord {
  RecordHeader header;
  std::uint32_t index;  // among the process's GPU agents
  std::uint32_t compute_units;
  std::uint32_t wavefront;
  std::uint32_t lds_bytes;    // per workgroup
  std::uint64_t cache_bytes;  // last level
  std::uint64_t clock_hz;     // of dispatch timestamps
  std::uint32_t simulated;    // 1: sim:
  std::uint32_t isa_length;   // "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"
  std::uint32_t name_length;  // agent name, "gfx942"
  std::uint32_t product_length;
};

enum DispatchFlags : std::uint32_t {
  kNeedsListener = 1,  // it called its host while it ran: printf, assert, device malloc
  kCooperative = 2,
  kGraph = 4,
};

struct DispatchRecord {
  RecordHeader header;
  std::uint8_t packet[64];  // hsa_kernel_dispatch_packet_t as submitted (completion signal as the program's)
  std::uint64_t kernel_id;  // live::Row::id
  std::uint64_t nth_of_kernel;  // from 1, in its process
  std::uint64_t nth_overall;
  std::uint64_t queue_id;
  std::uint64_t start_ns;  // as timed while capturing; 0 where not known
  std::uint64_t end_ns;
  std::uint64_t descriptor_address;  // == packet.kernel_object
  std::uint32_t code_object;         // CodeObjectRecord::id
  std::uint32_t flags;
  std::uint64_t reachable_bytes;  // closure found by scanning from kernargs and module segments
  std::uint64_t allocated_bytes;  // all allocations of the process on that device
  std::uint32_t memory_mode;      // live::MemoryMode
  std::uint32_t symbol_length;    // mangled, without ".kd"
  std::uint32_t demangled_length;
  std::uint32_t reserved;
};

// How a kernel was launched on a CUDA device. DispatchRecord::packet is then made from it, so that grid and
// workgroup are found in one place for every device: grid in work-items (cut off at 2^32 - 1), group segment
// size = static + dynamic shared memory, private segment size = local memory a thread, kernel object and
// kernarg address 0. KernargRecord holds the parameters as the kernel's parameter space has them.
enum CudaLaunchFlags : std::uint32_t { kCudaCooperative = 1 };

struct CudaLaunchRecord {
  RecordHeader header;
  std::uint32_t grid[3];  // in blocks
  std::uint32_t block[3];
  std::uint32_t cluster[3];  // in blocks; all 0: none was asked for
  std::uint32_t static_shared;
  std::uint32_t dynamic_shared;
  std::uint32_t flags;  // CudaLaunchFlags
  std::uint32_t registers;
  std::uint32_t local_bytes;
  // CUfunction_attribute of that name, as the program had set them.
  std::int32_t max_dynamic_shared;
  std::int32_t shared_carveout;
  std::int32_t non_portable_cluster;
  std::int32_t cluster_policy;
  std::uint32_t parameter_count;
  std::uint32_t attribute_count;
  // parameter_count x CudaParameter, attribute_count x CudaLaunchAttribute follow
};
struct CudaParameter {
  std::uint32_t offset;  // in the kernarg bytes
  std::uint32_t bytes;
};
struct CudaLaunchAttribute {  // CUlaunchAttribute, of those that say how the kernel runs
  std::uint32_t id;
  std::uint32_t reserved;
  std::uint8_t value[64];
};
static_assert(sizeof(CudaLaunchRecord) % 8 == 0);

struct KernargRecord {
  RecordHeader header;
  std::uint64_t address;
  std::uint64_t length;  // bytes follow
};

struct CodeObjectRecord {
  RecordHeader header;
  std::uint32_t id;  // from 1
  std::uint32_t uri_length;
  std::uint64_t content_hash;  // XXH64; file is code/%016x.hsaco
  std::uint64_t content_bytes;
  std::uint64_t load_base;  // lowest VA of its segments
  std::uint64_t load_bytes;
  std::int64_t load_delta;  // VA minus ELF p_vaddr
};

// A __device__ / __constant__ variable of a loaded code object. Its bytes are in the region that holds it.
struct VariableRecord {
  RecordHeader header;
  std::uint32_t code_object;
  std::uint32_t name_length;
  std::uint64_t address;
  std::uint64_t bytes;
};

enum class RegionKind : std::uint32_t {
  device = 1,  // GPU pool, coarse-grained
  device_fine = 2,
  host = 3,  // CPU pool allowed to the agent (hipHostMalloc, kernarg pool)
  kernarg = 4,
  registered = 5,    // the program's own host memory, locked for the agent
  managed = 6,       // svm
  vmem = 7,          // reserved address range with physical memory mapped
  code_segment = 8,  // writable or read-only data segment of a code object; restored through the loaded
                     // variables/segment
};

enum RegionFlags : std::uint32_t {
  kSaved = 1,  // bytes are in memory.pre
  kReachable = 2,
  kWritten = 4,  // has Change records
};

struct RegionRecord {
  RecordHeader header;
  std::uint32_t id;  // from 1
  RegionKind kind;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t pre_offset;  // in memory.pre, if kSaved
  std::uint32_t flags;
  std::uint32_t code_object;    // for code_segment; else 0
  std::uint32_t pool_flags;     // HSA global flags of the pool
  std::uint32_t reason_length;  // why it is not saved; empty if it is
};

struct ChangeRecord {  // after the dispatch, these bytes differ from memory.pre (some of them)
  RecordHeader header;
  std::uint32_t region;
  std::uint32_t reserved;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t post_offset;  // in memory.post
};

struct ChecksumsRecord {
  RecordHeader header;
  std::uint32_t file;  // 0: memory.pre, 1: memory.post
  std::uint32_t count;
  std::uint64_t first_block;
  // count x uint64: XXH64 (seed 0) of kChecksumBlock bytes each, the last one shorter
};

// Blocks of a memory file that were not written, because another block of that file has the same bytes: what
// lies in their place means nothing. Both are whole blocks with the same checksum; no block is here twice,
// and no source is itself a repeat. At most kMostRepeats of a file.
struct RepeatsRecord {
  RecordHeader header;
  std::uint32_t file;  // 0: memory.pre, 1: memory.post
  std::uint32_t count;
  // count x BlockRepeat follow
};
struct BlockRepeat {
  std::uint64_t block;
  std::uint64_t source;  // the block that has its bytes; before it or behind it
};

struct EndRecord {
  RecordHeader header;
};

}  // namespace kerncap::snapshot
