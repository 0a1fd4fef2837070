// The shared files of one session, read by C++ (the interposer) and by numpy (kerncap/core/program/live.py,
// core/program/control.py), which declares the same layout and is tested against this one.
//
// A session is a directory (mode 0700) that the front end makes and names in KERNCAP_SESSION:
//   control                     one Control block, made by the front end before the program starts
//   <pid>-<start>.live          one LiveHeader + rows + names for each process that used a GPU,
//                               made by the interposer on first use; <start> is /proc/<pid>/stat field 22.
//                               After an exec, or when the runtime is started anew, the same process has
//                               another: <pid>-<start>.2.live and so on
//   loaded                      text: paths of what processes have mapped as code (interpose/common/loaded.h)
// All integers are little-endian; every field is naturally aligned. Either side may die at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kerncap::live {

inline constexpr char kControlMagic[8] = {'K', 'C', 'C', 'T', 'R', 'L', '0', '1'};
inline constexpr char kLiveMagic[8] = {'K', 'C', 'L', 'I', 'V', 'E', '0', '1'};
inline constexpr std::uint32_t kVersion = 1;

// ---- the control block ---------------------------------------------------------------------

enum class RequestKind : std::uint32_t { none = 0, capture = 1, cancel = 2 };
enum class MemoryMode : std::uint32_t { reachable = 0, all = 1 };
enum class CaptureState : std::uint32_t {
  idle = 0,
  armed = 1,     // the request was seen by at least one process
  draining = 2,  // the dispatch was met; waiting for the device's queues
  saving = 3,    // memory before
  running = 4,   // the dispatch itself
  saving_changes = 5,
  done = 6,    // complete and flushed; `output` may be read
  failed = 7,  // `message` says why; nothing is left behind
  cancelled = 8,
  ambiguous = 9,  // `pattern` is no exact name and fits several kernels in the loaded code: not captured
};

// The front end fills the request and then stores request_sequence with release order; the process that
// takes it stores accepted_sequence. One request at a time; a new one replaces one that is only armed.
struct Control {
  char magic[8];
  std::uint32_t version;
  std::uint32_t bytes;  // sizeof(Control)
  std::uint32_t front_pid;
  std::uint32_t timing;                        // 1: time every dispatch; 0: only count
  std::atomic<std::uint32_t> unwatched;        // processes that have no statistics file
  std::atomic<std::uint32_t> unwatched_error;  // errno: why the last of them has none
  std::uint8_t reserved0[32];

  // request: front end -> interposer
  std::atomic<std::uint64_t> request_sequence;
  RequestKind request;
  MemoryMode memory;
  std::uint64_t nth;         // the n-th dispatch of the kernel in its process, from 1, counted from process
                             // start; 0: the next one
  std::uint64_t timeout_ms;  // limit for drain and for the dispatch itself
  std::uint32_t
      exit_after;  // 1: end the program (whole process, _exit status 0) once the capture is complete
  std::uint32_t pattern_exact;  // 1: `pattern` is an id or a mangled name and nothing else
  std::uint32_t grid[3];        // all zero: any grid; else only dispatches with this grid (work-items)
  std::uint32_t only_pid;       // 0: any process
  char pattern[65536];          // UTF-8, NUL-terminated
  char output[4096];            // directory to create (its parent exists); must not exist yet

  // status: interposer -> front end
  std::atomic<std::uint64_t> accepted_sequence;
  std::atomic<std::uint32_t> state;      // CaptureState
  std::atomic<std::uint32_t> owner_pid;  // who captures; claimed by compare-and-swap from 0
  std::atomic<std::uint64_t> bytes_done;
  std::atomic<std::uint64_t> bytes_total;
  std::uint64_t started_ns;  // CLOCK_MONOTONIC
  std::uint64_t saved_ns;    // time spent in saving memory (both passes)
  std::uint64_t finished_ns;
  std::atomic<std::uint64_t> processes;  // how many processes have attached
  char message[4096];                    // UTF-8, NUL-terminated; written before `state`
};

// What the states promise, in the order in which a request meets them:
//   armed       seen by a process that may take it; owner_pid is 0. A request of another pid (only_pid)
//               stays idle. If the dispatch was before the request and no other process can have it: failed.
//   ambiguous   message: "<id, 16 hex>\t<demangled name>\n" for each candidate, cut off where it does not
//               fit; the program runs on, so that its launches are seen. owner_pid is 0.
//   draining .. saving_changes   owner_pid has it; accepted_sequence == request_sequence; started_ns is set.
//               bytes_total grows while memory is found; in saving_changes bytes_done starts again from 0.
//   done        message empty. With exit_after the process has flushed stdio and ends by _exit(0).
//   failed      message: one sentence, without a full stop. OUTPUT.partial-<pid> is removed; only a
//               process that is killed leaves it.
//   cancelled   as failed. A cancel that comes too late leaves done.
// With a grid, `nth` means: from the nth dispatch on, the first one with that grid.

// ---- the statistics file -------------------------------------------------------------------

enum class KernelKind : std::uint32_t {
  unknown = 0,
  hip = 1,
  triton = 2,
  inductor = 3,
  tensile = 4,
  cuda = 5,
  runtime = 6
};
enum class ProcessState : std::uint32_t { running = 0, exited = 1 };
enum class ClockKind : std::uint32_t { gpu = 0, simulated = 1 };

inline constexpr std::uint32_t kRowBytes = 512;
inline constexpr std::uint32_t kMaxRows = 65536;  // row 0 takes what does not fit elsewhere
inline constexpr std::uint64_t kRowsOffset = 4096;
inline constexpr std::uint64_t kNamesOffset = kRowsOffset + std::uint64_t{kRowBytes} * kMaxRows;
inline constexpr std::uint64_t kMaxNameBytes = 256u << 20;
// The file is extended with posix_fallocate in chunks (a write to a hole of a full disk would be SIGBUS);
// readers map what exists and map again when rows or names have grown past it.

struct LiveHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t row_bytes;
  std::uint32_t max_rows;
  std::uint32_t pid;
  std::uint32_t parent_pid;
  ClockKind clock;
  std::uint64_t start_realtime_ns;
  std::uint64_t start_monotonic_ns;
  std::atomic<std::uint32_t> state;      // ProcessState
  std::atomic<std::uint32_t> row_count;  // rows 1..row_count are valid; stored with release order
  std::atomic<std::uint64_t> name_bytes;
  std::atomic<std::uint64_t> dispatches;  // kernel dispatch packets seen
  std::atomic<std::uint64_t> timed;       // with a believable start and end
  std::atomic<std::uint64_t> rejected;    // completed, but zero, negative or absurd timestamps
  std::atomic<std::uint64_t> lost;        // never seen to complete, or no row left
  std::atomic<std::uint64_t> pending;     // in flight now
  std::atomic<std::uint64_t> own_ns;      // time spent in the interposer's dispatch path
  std::atomic<std::uint64_t> updated_ns;  // CLOCK_MONOTONIC of the last change
  char executable[1024];                  // path
  char devices[1024];                     // one line an agent: "index\tname\tisa\tmarketing name\n"
  char runtime[256];                      // path of the HSA/CUDA runtime and its version
  char message[1024];                     // a warning of the interposer's, e.g. why it cannot time
  std::atomic<std::uint64_t> allocated;   // bytes that the program has from the runtime now
  std::atomic<std::uint32_t> sampling;    // 1 once the process has stopped timing every dispatch
};
static_assert(sizeof(LiveHeader) <= 4096);

struct alignas(kRowBytes) Row {
  std::uint64_t id;           // shown as 16 hex digits, or the shortest unique prefix of at least 6;
                              // hash of symbol and code object content
  std::uint64_t name_offset;  // from kNamesOffset: mangled symbol (no ".kd"), UTF-8
  std::uint64_t demangled_offset;
  std::uint32_t name_length;
  std::uint32_t demangled_length;
  KernelKind kind;
  std::uint32_t device;  // index into `devices`
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> timed;
  std::atomic<std::uint64_t> total_ns;
  std::atomic<std::uint64_t> min_ns;  // UINT64_MAX while timed == 0
  std::atomic<std::uint64_t> max_ns;
  std::atomic<std::uint64_t> last_ns;
  std::atomic<std::uint64_t> last_seen_ns;  // CLOCK_MONOTONIC
  std::uint64_t code_hash;                  // XXH64 of the code object's bytes
  std::atomic<std::uint32_t> grid[3];       // of the last dispatch, in work-items
  std::atomic<std::uint32_t> block[3];
  std::uint32_t vgprs;  // per work-item, as allocated; 0: not known
  std::uint32_t sgprs;
  std::uint32_t lds_bytes;  // static
  std::uint32_t scratch_bytes;
  std::atomic<std::uint32_t> last_dynamic_lds;
  std::atomic<std::uint32_t> slowest;        // which dispatch of the kernel took max_ns, from 1; 0: not known
  std::atomic<std::uint32_t> histogram[64];  // [i]: durations in [2^i, 2^(i+1)) ns; 0 ns never gets here
  std::atomic<std::uint64_t> tuning;         // of the calls: made by an autotuner, to time a candidate
};
static_assert(sizeof(Row) == kRowBytes);  // rows are indexed as an array

}  // namespace kerncap::live
