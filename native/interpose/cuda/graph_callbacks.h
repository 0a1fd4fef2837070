// What CUPTI tells of the program's calls that make, change and launch executable graphs.
#pragma once

#include <span>

#include "abi/cuda_cupti.h"

namespace kerncap::interpose::cuda {

struct Process;

// The ids to ask CUPTI for.
std::span<const abi::CUpti_CallbackId> graph_calls();
std::span<const abi::CUpti_CallbackId> graph_launches();

// For any id; those of no graph are let pass.
void graph_call_begins(Process& process, abi::CUpti_CallbackId id, const abi::CUpti_CallbackData& data);
// `data` is of a call that succeeded.
void graph_call_ends(Process& process, abi::CUpti_CallbackId id, const abi::CUpti_CallbackData& data);

bool is_graph_launch(abi::CUpti_CallbackId id);
void graph_launch(Process& process, abi::CUpti_CallbackId id, const abi::CUpti_CallbackData& data);
// One that kerncap makes itself.
void own_call(Process& process, abi::CUpti_CallbackId id, const abi::CUpti_CallbackData& data);

}  // namespace kerncap::interpose::cuda
