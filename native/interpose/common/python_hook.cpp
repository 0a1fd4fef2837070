#include "interpose/common/python_hook.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace kerncap::interpose {
namespace {

// Of Python's C API, by name: the program is linked with whichever Python it is.
using Object = void;
using AuditHook = int (*)(const char* event, Object* arguments, void* data);

template <typename Function>
Function python(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

constexpr int kFileInput = 257;  // Py_file_input

// In a name space of its own. What goes wrong there is written into the session by start.py; where even
// that is not possible, the program goes on without it.
constexpr const char* kCode =
    "def start(session):\n"
    "    import os\n"
    "    path = os.path.join(session, 'triton_hook', 'start.py')\n"
    "    with open(path, encoding='utf-8') as file:\n"
    "        code = compile(file.read(), path, 'exec')\n"
    "    exec(code, {'__name__': 'kerncap_triton_hook', '__file__': path, 'session': session})\n"
    "try:\n"
    "    start(session)\n"
    "except Exception:\n"
    "    pass\n";

std::string& session() {
  static std::string directory;
  return directory;
}

bool find_session() {
  const char* value = std::getenv("KERNCAP_SESSION");
  if (value == nullptr || *value == 0) return false;
  session() = value;
  return true;
}

// With the GIL held.
void start() {
  static bool started = false;
  if (started) return;
  started = true;
  const auto new_dict = python<Object* (*)()>("PyDict_New");
  const auto set_item = python<int (*)(Object*, const char*, Object*)>("PyDict_SetItemString");
  const auto decode = python<Object* (*)(const char*)>("PyUnicode_DecodeFSDefault");
  const auto run = python<Object* (*)(const char*, int, Object*, Object*, void*)>("PyRun_StringFlags");
  const auto clear = python<void (*)()>("PyErr_Clear");
  const auto release = python<void (*)(Object*)>("Py_DecRef");
  if (new_dict == nullptr || set_item == nullptr || decode == nullptr || run == nullptr || clear == nullptr ||
      release == nullptr)
    return;
  Object* names = new_dict();
  Object* directory = decode(session().c_str());
  if (names != nullptr && directory != nullptr && set_item(names, "session", directory) == 0) {
    if (Object* result = run(kCode, kFileInput, names, names, nullptr)) release(result);
  }
  clear();
  release(directory);
  release(names);
}

int on_event(const char* event, Object* arguments, void* /*data*/) {
  if (std::strcmp(event, "import") != 0 || arguments == nullptr) return 0;
  static const auto item = python<Object* (*)(Object*, std::ptrdiff_t)>("PyTuple_GetItem");
  static const auto utf8 = python<const char* (*)(Object*)>("PyUnicode_AsUTF8");
  static const auto clear = python<void (*)()>("PyErr_Clear");
  if (item == nullptr || utf8 == nullptr || clear == nullptr) return 0;
  Object* module = item(arguments, 0);
  const char* name = module != nullptr ? utf8(module) : nullptr;
  if (name == nullptr) {
    clear();
  } else if (std::strcmp(name, "triton") == 0) {
    start();
  }
  return 0;
}

int start_pending(void* /*data*/) {
  start();
  return 0;
}

}  // namespace

void watch_python() {
  const auto add = python<int (*)(AuditHook, void*)>("PySys_AddAuditHook");
  const auto initialized = python<int (*)()>("Py_IsInitialized");
  // Documented as callable before Py_Initialize; later it needs the GIL.
  if (add == nullptr || initialized == nullptr || initialized() != 0 || !find_session()) return;
  add(on_event, nullptr);
}

void watch_running_python() {
  const auto add = python<int (*)(int (*)(void*), void*)>("Py_AddPendingCall");
  const auto initialized = python<int (*)()>("Py_IsInitialized");
  if (add == nullptr || initialized == nullptr || initialized() == 0 || !find_session()) return;
  add(start_pending, nullptr);
}

}  // namespace kerncap::interpose
