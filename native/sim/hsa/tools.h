// Tools: shared libraries that get the live API table when the runtime starts, found as ROCr finds them.
#pragma once

namespace kerncap::sim::rt {

// Calls OnLoad of each tool: those that HSA_TOOLS_LIB names, and each loaded library that defines
// HSA_AMD_TOOL_PRIORITY, lower numbers first. A profiler that activates rocprofiler-register gets the table
// through rocprofiler_set_api_table instead.
void load_tools();

// Calls OnUnload in the opposite order, and closes them.
void unload_tools();

// In a forked child: the tools of the parent's runtime are not ours to unload.
void forget_tools();

}  // namespace kerncap::sim::rt
