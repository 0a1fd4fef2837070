// Which programs and libraries a process has loaded, written down in the session as it starts and as it ends:
// a process that ends soon cannot be looked at from outside, and where nothing was dispatched its files tell
// why. No part of it is needed for watching: where it fails, nothing is said.
#pragma once

#include <string>

namespace kerncap::interpose {

// Adds the files that this process has mapped as code to the list in the session that is named in its
// environment; again only where libraries were loaded since. Nothing without a session.
void note_loaded();

// The same for one session: each file once, as /proc/self/maps names it, a line each. The system's own
// libraries are left out unless they are of a GPU runtime.
void note_loaded_in(const std::string& session);

}  // namespace kerncap::interpose
