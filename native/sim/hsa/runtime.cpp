#include "sim/hsa/runtime.h"

#include <pthread.h>

#include <cstdarg>
#include <cstdio>
#include <new>

#include "sim/hsa/api_tables.h"
#include "sim/hsa/copy_engine.h"
#include "sim/hsa/impl.h"
#include "sim/hsa/tools.h"

namespace kerncap::sim::rt {
namespace {

std::atomic<Runtime*> g_runtime{nullptr};
// Recursive, since a tool may call hsa_init from its OnLoad.
std::recursive_mutex& init_mutex() {
  static auto* mutex = new std::recursive_mutex;  // never destroyed: threads may outlive main
  return *mutex;
}
std::uint32_t g_references = 0;

// A forked child has none of our threads. It forgets the parent's runtime, whose locks may be held by threads
// that are not there, and may start its own.
void before_fork() { init_mutex().lock(); }
void after_fork_in_parent() { init_mutex().unlock(); }
void after_fork_in_child() {
  g_runtime.store(nullptr);
  g_references = 0;
  reset_api_tables();
  forget_tools();
  // The mutex knows its owner by thread id, which is another one here: it cannot be unlocked, only made anew.
  new (&init_mutex()) std::recursive_mutex;
}

}  // namespace

void complain(const char* format, ...) {
  char text[4096];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "kerncap: %s\n", text);
}

Runtime* Runtime::get() { return g_runtime.load(std::memory_order_acquire); }

Runtime::Runtime(const Config& config)
    : memory(this),
      vmem(this),
      svm(this),
      events(this),
      loader(this),
      config_(config),
      agents_(make_agents(config)) {
  for (const auto& agent : agents_) {
    if (!agent->is_gpu) continue;
    agent->copies = std::make_unique<CopyEngine>(this, agent.get());
    agent->gpu->set_source_resolver([this](std::uint64_t pc) { return loader.source_line(pc); });
  }
}

Runtime::~Runtime() = default;

abi::hsa_status_t Runtime::acquire() {
  static std::once_flag fork_handlers;
  std::call_once(fork_handlers,
                 [] { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); });
  std::lock_guard lock(init_mutex());
  if (g_references == INT32_MAX) return abi::HSA_STATUS_ERROR_REFCOUNT_OVERFLOW;
  if (g_references++ != 0) return abi::HSA_STATUS_SUCCESS;
  std::string error;
  std::optional<Config> config = Config::from_environment(&error);
  if (!config) {
    complain("%s", error.c_str());
    g_references = 0;
    return abi::HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  }
  auto* runtime = new Runtime(*config);  // released in release(); a forked child's copy stays
  g_runtime.store(runtime, std::memory_order_release);
  load_tools();
  runtime->vmem_ready_.store(true, std::memory_order_release);
  return abi::HSA_STATUS_SUCCESS;
}

abi::hsa_status_t Runtime::release() {
  std::lock_guard lock(init_mutex());
  if (g_references == 0) return abi::HSA_STATUS_ERROR_NOT_INITIALIZED;
  if (--g_references != 0) return abi::HSA_STATUS_SUCCESS;
  Runtime* runtime = get();
  g_references = 1;  // OnUnload may still call us
  unload_tools();
  g_references = 0;
  reset_api_tables();
  runtime->queues.destroy_all();
  for (const auto& agent : runtime->agents_) agent->copies.reset();
  runtime->events.stop();
  g_runtime.store(nullptr, std::memory_order_release);
  // Memory that the program still holds (allocations, signals, queues' rings) stays mapped, and the Runtime
  // with it: a late waiter on a signal must not touch freed memory.
  return abi::HSA_STATUS_SUCCESS;
}

Agent* Runtime::find_agent(abi::hsa_agent_t handle) const {
  for (const auto& agent : agents_)
    if (agent->handle().handle == handle.handle) return agent.get();
  return nullptr;
}

Agent* Runtime::find_gpu(abi::hsa_agent_t handle) const {
  Agent* agent = find_agent(handle);
  return agent != nullptr && agent->is_gpu ? agent : nullptr;
}

Pool* Runtime::find_pool(std::uint64_t handle) const {
  for (const auto& agent : agents_)
    for (const auto& pool : agent->pools)
      if (pool->handle() == handle) return pool.get();
  return nullptr;
}

void Runtime::share_with_gpus(std::uint64_t base, std::uint64_t size, const char* kind) {
  for (const auto& agent : agents_)
    if (agent->is_gpu) agent->memory.add({base, size, true, kind});
}

void Runtime::add_event_handler(abi::hsa_amd_system_event_callback_t callback, void* data) {
  std::lock_guard lock(handlers_mutex_);
  event_handlers_.emplace_back(callback, data);
}

bool Runtime::raise_event(const abi::hsa_amd_event_t& event) {
  decltype(event_handlers_) handlers;
  {
    std::lock_guard lock(handlers_mutex_);
    handlers = event_handlers_;
  }
  bool taken = false;
  for (auto [callback, data] : handlers) taken |= callback(&event, data) == abi::HSA_STATUS_SUCCESS;
  return taken;
}

namespace impl {

hsa_status_t hsa_init() { return Runtime::acquire(); }
hsa_status_t hsa_shut_down() { return Runtime::release(); }

hsa_status_t hsa_amd_register_system_event_handler(hsa_amd_system_event_callback_t callback, void* data) {
  KERNCAP_SIM_RUNTIME(rt);
  if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  rt->add_event_handler(callback, data);
  return HSA_STATUS_SUCCESS;
}

}  // namespace impl
}  // namespace kerncap::sim::rt
