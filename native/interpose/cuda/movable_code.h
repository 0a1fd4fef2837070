// How much of a function's beginning can run elsewhere. x86-64.
#pragma once

#include <cstddef>
#include <span>

namespace kerncap::interpose::cuda {

// Bytes of `endbr64` that the function begins with: 4 or 0. A jump to it is written behind them.
std::size_t landing_pad(std::span<const unsigned char> code);

// The least number of bytes, at least `wanted`, that are whole instructions which do the same at any address.
// 0: there is none, because one of them refers to its own address (a jump, a call, an operand relative to
// rip) or is not among those that compilers begin functions with.
std::size_t movable_bytes(std::span<const unsigned char> code, std::size_t wanted);

}  // namespace kerncap::interpose::cuda
