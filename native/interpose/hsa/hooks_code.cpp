// Code objects on their way into the process, and queues.

#include "interpose/hsa/api.h"
#include "interpose/hsa/hooks.h"
#include "interpose/hsa/process.h"

namespace kerncap::interpose {

using namespace abi;  // NOLINT: the ABI's own names

namespace {

Process* prepared() {
  Process* p = process();
  if (p != nullptr) p->prepare();
  return p;
}

bool good(hsa_status_t status) { return status == HSA_STATUS_SUCCESS; }

hsa_status_t reader_from_file(hsa_file_t file, hsa_code_object_reader_t* reader) {
  const hsa_status_t status = api().core.hsa_code_object_reader_create_from_file_fn(file, reader);
  Process* p = prepared();
  if (good(status) && p != nullptr) p->kernels.reader_created(reader->handle, file);
  return status;
}

hsa_status_t reader_from_memory(const void* data, std::size_t size, hsa_code_object_reader_t* reader) {
  const hsa_status_t status = api().core.hsa_code_object_reader_create_from_memory_fn(data, size, reader);
  Process* p = prepared();
  if (good(status) && p != nullptr) p->kernels.reader_created(reader->handle, data, size);
  return status;
}

hsa_status_t reader_destroy(hsa_code_object_reader_t reader) {
  if (Process* p = prepared()) p->kernels.reader_destroyed(reader.handle);
  return api().core.hsa_code_object_reader_destroy_fn(reader);
}

hsa_status_t load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                    hsa_code_object_reader_t reader, const char* options,
                                    hsa_loaded_code_object_t* loaded) {
  hsa_loaded_code_object_t own{};
  if (loaded == nullptr) loaded = &own;
  const hsa_status_t status =
      api().core.hsa_executable_load_agent_code_object_fn(executable, agent, reader, options, loaded);
  Process* p = prepared();
  if (good(status) && p != nullptr) p->kernels.code_loaded(executable, agent, reader.handle, *loaded);
  return status;
}

hsa_status_t freeze(hsa_executable_t executable, const char* options) {
  const hsa_status_t status = api().core.hsa_executable_freeze_fn(executable, options);
  Process* p = prepared();
  if (good(status) && p != nullptr) p->kernels.executable_frozen(executable);
  return status;
}

hsa_status_t executable_destroy(hsa_executable_t executable) {
  if (Process* p = prepared()) {
    p->captures.wait_while_active();
    p->kernels.executable_destroyed(executable);
  }
  return api().core.hsa_executable_destroy_fn(executable);
}

bool profiler_made_queues = false;

hsa_status_t queue_create(hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                          void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data,
                          std::uint32_t private_bytes, std::uint32_t group_bytes, hsa_queue_t** queue) {
  Process* p = prepared();
  const AgentInfo* info = p != nullptr ? p->agents.find(agent) : nullptr;
  const bool ours = info != nullptr && info->gpu && queue != nullptr;
  if (!ours || profiler_made_queues) {
    const hsa_status_t status =
        api().core.hsa_queue_create_fn(agent, size, type, callback, data, private_bytes, group_bytes, queue);
    // With a profiler in front, its queues are intercept queues already and ours is one more handler on them.
    if (!ours || !good(status) || p->new_queue(*queue, *info)) return status;
    api().core.hsa_queue_destroy_fn(*queue);
  }
  const hsa_status_t status = api().amd.hsa_amd_queue_intercept_create_fn(agent, size, type, callback, data,
                                                                          private_bytes, group_bytes, queue);
  if (good(status) && !p->new_queue(*queue, *info)) {
    p->warn(
        "a queue cannot be watched: hsa_amd_queue_intercept_register failed; its dispatches are not counted");
  }
  return status;
}

hsa_status_t queue_destroy(hsa_queue_t* queue) {
  constexpr std::uint64_t kLimitNs = 1'000'000'000;
  std::shared_ptr<InterceptQueue> ours;  // lives until the runtime is done with the queue
  if (Process* p = process()) {
    p->captures.wait_while_active();
    ours = p->queues.take(queue);
    if (ours != nullptr) ours->finish(kLimitNs);
  }
  return api().core.hsa_queue_destroy_fn(queue);
}

}  // namespace

void install_code_hooks(CoreApiTable& core) {
  put(core, &CoreApiTable::hsa_code_object_reader_create_from_file_fn, &reader_from_file);
  put(core, &CoreApiTable::hsa_code_object_reader_create_from_memory_fn, &reader_from_memory);
  put(core, &CoreApiTable::hsa_code_object_reader_destroy_fn, &reader_destroy);
  put(core, &CoreApiTable::hsa_executable_load_agent_code_object_fn, &load_agent_code_object);
  put(core, &CoreApiTable::hsa_executable_freeze_fn, &freeze);
  put(core, &CoreApiTable::hsa_executable_destroy_fn, &executable_destroy);
}

void install_queue_hooks(CoreApiTable& core, bool profiler_first) {
  profiler_made_queues = profiler_first;
  put(core, &CoreApiTable::hsa_queue_create_fn, &queue_create);
  put(core, &CoreApiTable::hsa_queue_destroy_fn, &queue_destroy);
}

}  // namespace kerncap::interpose
