// Our functions in the runtime's tables.
#pragma once

#include "abi/hsa.h"

namespace kerncap::interpose {

// Saves the tables' entries and puts ours in front; once for each set of tables. `profiler_first`: the table
// was handed out through rocprofiler-register, whose queues are intercept queues already.
void install_hooks(abi::HsaApiTable& tables, bool profiler_first);

void install_memory_hooks(abi::CoreApiTable& core, abi::AmdExtTable& amd);
void install_code_hooks(abi::CoreApiTable& core);
void install_queue_hooks(abi::CoreApiTable& core, bool profiler_first);

// Replaces a table's entry, if the runtime has it.
template <typename Table, typename Function>
void put(Table& table, Function Table::* member, Function hook) {
  const auto offset =
      static_cast<std::size_t>(reinterpret_cast<char*>(&(table.*member)) - reinterpret_cast<char*>(&table));
  if (abi::table_has(table, offset)) table.*member = hook;
}

}  // namespace kerncap::interpose
