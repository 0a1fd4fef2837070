// How kerncap.core.replay.replayer drives kerncap-replay: lines on stdin, answers on stdout.
//
// A request is one line: a command and its arguments, separated by single spaces. In an argument, '%', ' ',
// line breaks and other control characters are written %XX; an empty one is "-". An answer is any number of
// the first two lines, then one of the last two:
//   note KEY TEXT                 something to tell the user (TEXT escaped as above)
//   data NAME BYTES               followed by BYTES raw bytes
//   ok KEY=VALUE ...
//   error CLASS ADDRESS TEXT      CLASS: usage device collision damaged fault timeout internal; ADDRESS 0:
//   none.
//                                 After fault, timeout and internal the process ends.
// The first answer comes unasked, when the memory is in place: ok, or error and the end of the process.
// stdout carries nothing else: what a runtime prints goes to stderr.
//
// Numbers are decimal, addresses hexadecimal with 0x. Commands:
//   load FILE SYMBOL PRIVATE GROUP KERNARGS [X Y Z ITEMS [CLUSTER]]
//        a variant; KERNARGS in hexadecimal digits, "-": as captured. X, Y, Z: its grid in workgroups, of
//        ITEMS work-items each, where the launch is not the captured one; CLUSTER of them, along x, in one
//        thread block cluster (0 and 1: none)
//        -> variant base kernarg_bytes static_group static_private unmatched_bytes guessed_pointers; note
//        unmatched NAME
//   empty                                     the captured kernel, emptied -> variant
//   run VARIANT COUNT warm|cold BATCH track|time restore|over LIMIT_S
//        -> data times: COUNT*BATCH pairs of uint64 (start, end), nanoseconds of the device's clock, 0: none;
//           data events: as many pairs of the system clock, before a dispatch was submitted and after it was
//           seen to have ended; device_bytes: put back so far from a copy on the device
//   restore changed|full
//   compare application|reference written|all VARIANT FILE|- LIMIT
//        -> compared different seconds; data runs: compare.h's DiffRun each; their bytes in FILE; data
//        compared:
//           pairs of uint64 (region, bytes compared in it)
//   written VARIANT | outside VARIANT | missing VARIANT
//        -> bytes ranges; data ranges: at most 4096 pairs of uint64 (address, bytes): what its last tracked
//        run stored
//           to; what of that is not in the written set; what of the written set it did not store to
//   allow VARIANT        adds what it stored to to the written set -> bytes
//   set VARIANT          the written set -> bytes silent (same value before and after); data ranges
//   poison written|REGION GRANULE [silent|all]   alters its silent bytes, or all of it -> bytes
//   pointers alter|back VARIANT   makes words that point into the captured code object point nowhere, or puts
//        those back that still do -> words: that were altered (0: there are none, or too many); put back
//   keep written|changed|REGION VARIANT       memory as it is becomes the reference: in the written set, or
//        wherever it is not as captured -> bytes
//   idempotent VARIANT LIMIT_S                -> same=0|1
//   schedule SEED        another order of workgroups, where the device offers that
//   dump DIRECTORY       -> data files: names, one a line
//   memcmp               -> bytes seconds
//   quit
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kerncap::replay {

std::string escape(std::string_view text);
std::string unescape(std::string_view word);

struct Request {
  std::string command;
  std::vector<std::string> arguments;

  // Argument `i`; throws ReplayError (usage) where it is missing or, for number(), is none.
  [[nodiscard]] const std::string& text(std::size_t i) const;
  [[nodiscard]] std::uint64_t number(std::size_t i) const;
  [[nodiscard]] double real(std::size_t i) const;
  // One of two words: true for the first.
  [[nodiscard]] bool choice(std::size_t i, const char* yes, const char* no) const;
};

class Channel {
 public:
  // Takes stdout for answers, and gives its place to stderr for everybody else.
  Channel();

  // False at the end of input.
  bool read(Request* request);
  void note(const std::string& key, const std::string& text);
  void data(const std::string& name, const void* bytes, std::uint64_t size);
  void ok(const std::string& values = "");
  void error(const char* error_class, std::uint64_t address, const std::string& text);
  // Where answers go.
  [[nodiscard]] int fd() const { return out_; }

 private:
  void send(std::string_view text);

  int out_ = -1;
  std::string pending_;  // input that was read and is no whole line yet
};

}  // namespace kerncap::replay
