// One capture, held on a device: what the protocol's commands (protocol.h) do.
//
// All addresses are those of the capture, unless a name says `live`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/backend.h"
#include "replay/backend_run.h"
#include "replay/compare.h"
#include "replay/device_shadow.h"
#include "replay/range_set.h"
#include "replay/replay_memory.h"
#include "replay/reserve.h"
#include "snapshot/capture_reader.h"

namespace kerncap::replay {

enum class Against { application, reference };

struct RunRequest {
  unsigned variant = 0;
  std::uint64_t count = 1;
  bool cold = false;
  std::uint64_t batch = 1;  // dispatches a sample, without a restore between them
  bool track = false;       // remember what is written, where the device can tell
  bool restore = true;      // before each sample
  double limit_seconds = 60;
};

// How many workgroups along each axis, and work-items in each.
struct Shape {
  std::uint64_t groups[3]{};
  std::uint64_t items = 0;
  std::uint64_t cluster =
      0;  // workgroups along x that run together, where the device has that; 0: no cluster
};

class Session {
 public:
  // `memory` and `reservation` were set up before the runtime was opened. Places and fills the memory.
  // `track_writes` false: a simulated device is treated as hardware, which neither tells what a dispatch
  // stores to nor lets the host touch its memory. `timestamps` false: its dispatches have none.
  Session(const snapshot::CaptureReader& capture, ReplayMemory& memory, Reservation& reservation,
          const std::string& runtime_path, int device_index, bool track_writes, bool timestamps);

  // Loads a variant; its number. `kernargs` empty: the captured ones.
  unsigned load(const std::string& file, const std::string& symbol, std::uint32_t private_bytes,
                std::uint32_t group_bytes, const std::vector<unsigned char>& kernargs,
                const std::optional<Shape>& shape = {});
  // The captured code object with its kernel emptied.
  unsigned load_empty();

  std::vector<DispatchTime> run(const RunRequest& request);
  // `full`: compares everything with the capture and puts back what differs, whatever is known of what was
  // written.
  void restore(bool full);
  CompareResult compare(Against against, bool written_only, const std::string& data_path, std::uint64_t limit,
                        unsigned variant);

  // What `variant` stored to in its last tracked run.
  [[nodiscard]] const RangeSet& written(unsigned variant) const { return at(variant).written; }
  // Adds that to the written set, against which variants are held.
  void allow(unsigned variant);
  // The written set: what was allowed, else what the application's run changed.
  [[nodiscard]] RangeSet written_set() const;
  // Blocks of 4096 bytes that are not as captured.
  RangeSet changed_blocks();
  // How many bytes of the written set have the same value before and after the application's run.
  [[nodiscard]] std::uint64_t silent_bytes(unsigned variant) const;
  // Alters silent bytes of `where`, in every variant's variables too, in units of `granule` bytes that are
  // silent as a whole; `everything`: all bytes of it instead. How many were altered.
  std::uint64_t poison(const RangeSet& where, std::uint64_t granule, bool everything);
  // Makes the words of memory and of the variant's kernel arguments that point into the captured code object
  // point nowhere; `alter` false: puts those back that still do. How many; 0 also where they are too many to
  // be known.
  std::uint64_t alter_code_pointers(unsigned variant, bool alter);
  // Keeps the present content of `where`, and of the variables of `variant`, as the reference.
  std::uint64_t keep(const RangeSet& where, unsigned variant);
  // Whether a second run on top of the first leaves the same memory.
  bool idempotent(unsigned variant, double limit_seconds);
  // One file a region that holds written bytes: DIR/<address>.bin, as memory is now.
  std::vector<std::string> dump(const std::string& directory);
  // Seconds of one memcmp of all pieces with the capture, on one thread; bytes in `*bytes`.
  double memcmp_pass(std::uint64_t* bytes) const;
  void schedule(std::uint64_t seed);

  [[nodiscard]] const Module& module(unsigned variant) const { return *at(variant).module; }
  [[nodiscard]] RangeSet region_range(std::uint32_t id) const;
  [[nodiscard]] bool tracks_writes() const { return launcher_->can_track_writes(); }
  [[nodiscard]] const char* timer() const { return launcher_->timer(); }
  [[nodiscard]] const Agent& agent() const { return agent_; }
  [[nodiscard]] const Runtime& runtime() const { return runtime_; }
  [[nodiscard]] const ReplayMemory& memory() const { return memory_; }
  // Bytes that were put back from the copy on the device, so far.
  [[nodiscard]] std::uint64_t device_bytes() const { return shadow_->restored_bytes(); }
  [[nodiscard]] double restore_seconds() const { return restore_seconds_; }
  [[nodiscard]] std::uint64_t queue_address() const { return launcher_->queue_address(); }

 private:
  struct Variant {
    std::unique_ptr<Module> module;
    Launch launch;
    RangeSet written;                 // last tracked run
    RangeSet learned;                 // what its runs write, for restoring between untracked runs
    bool knows = false;               // learned is set
    void* kernargs = nullptr;         // own copy; null: at the captured address
    std::uint64_t kernarg_bytes = 0;  // of that copy
  };
  Variant& at(unsigned variant);
  [[nodiscard]] const Variant& at(unsigned variant) const { return const_cast<Session*>(this)->at(variant); }
  unsigned add(std::unique_ptr<Module> module, std::uint32_t private_bytes, std::uint32_t group_bytes,
               const std::vector<unsigned char>& kernargs, const std::optional<Shape>& shape = {});
  void place_kernargs(Variant& variant, const std::vector<unsigned char>& kernargs);
  std::vector<DispatchTime> dispatch(Variant& variant, std::uint64_t count, bool track, double limit_seconds);
  void learn(Variant& variant);
  void restore_ranges(const RangeSet& ranges);
  // What of the variant's writes lies in mapped regions, in the pieces that restore_ranges copies.
  [[nodiscard]] RangeSet restorable(const Variant& variant) const;
  void restore_module(const Module& module);
  RangeSet to_captured(const Module& module, const RangeSet& live) const;
  std::uint64_t poison_item(const Expectation& item, const RangeSet& where, std::uint64_t granule,
                            bool everything);
  // What makes addresses of the captured code object into some where nothing is; 0: there is no such.
  [[nodiscard]] std::uint64_t nowhere() const;
  bool poison_again(const RangeSet& where, std::uint64_t granule, bool everything);
  [[nodiscard]] std::vector<Expectation> expectations(Against against, unsigned variant) const;
  std::unique_ptr<Module> load_module(std::string name, std::vector<unsigned char> content,
                                      const std::string& symbol);

  const snapshot::CaptureReader& capture_;
  ReplayMemory& memory_;
  Reservation& reservation_;
  Runtime runtime_;
  Agent agent_;
  std::unique_ptr<Launcher> launcher_;
  std::unique_ptr<DeviceShadow> shadow_;
  std::vector<Variant> variants_;
  std::vector<Overlay> application_;
  std::vector<Overlay> reference_;
  std::vector<std::vector<unsigned char>> reference_bytes_;
  RangeSet allowed_;
  RangeSet dirty_;
  bool dirty_unknown_ = false;
  bool code_placed_ = false;  // one code object lies where the captured one lay
  double restore_seconds_ = 0;
  // What poison() made of memory last, on a device whose memory the host does not touch.
  struct Poisoned {
    RangeSet where;
    std::uint64_t granule = 0;
    bool everything = false;
    std::uint64_t bytes = 0;              // altered
    std::unique_ptr<DeviceShadow> image;  // of `where`, altered
  };
  Poisoned poisoned_;
  std::uint64_t nowhere_ = 0;  // of the words that are altered
};

}  // namespace kerncap::replay
