// What captures on every device do alike.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "live/layout.h"

namespace kerncap::interpose {

class Cancelled : public std::exception {};

inline constexpr std::uint64_t kNsPerMs = 1'000'000;

// "2.5 s"
std::string seconds(std::uint64_t ms);

// Between two looks at what is waited for.
void pause_briefly();

// Ends the program once its capture is on disk: with status 0, and with what it has printed. The last of it
// is that the capture's state becomes `done`.
[[noreturn]] void leave_program(live::LiveHeader& header, live::Control& control);

}  // namespace kerncap::interpose
