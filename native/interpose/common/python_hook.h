// Kernels that Triton compiles while a Python program runs leave no source behind that could be found
// afterwards: app/kerncap/triton_hook/ writes it down in that program. This brings it there without a
// variable, a path entry or a file of the user's Python being touched.
#pragma once

namespace kerncap::interpose {

// For a library that is loaded before Python starts: an audit hook (PEP 578; Python 3.8 and newer) waits for
// the first `import triton`. Nothing in a process that is no Python, or has no session.
void watch_python();

// For one that is loaded while Python runs, by whichever thread: Python's main thread starts the hook soon
// after.
void watch_running_python();

}  // namespace kerncap::interpose
