#include "interpose/common/python_hook.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>

#include "interpose/common/names.h"
#include "interpose/common/triton.h"

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

// PyMethodDef, which is of the stable ABI.
struct MethodDef {
  const char* name;
  Object* (*function)(Object* self, Object* arguments);
  int flags;
  const char* documentation;
};
constexpr int kVarargs = 1;  // METH_VARARGS: the arguments are one tuple

// In a name space of its own. What goes wrong there is written into the session by start.py; where even
// that is not possible, the program goes on without it.
constexpr const char* kCode =
    "def start(session, tuning, compiled):\n"
    "    import os\n"
    "    path = os.path.join(session, 'triton_hook', 'start.py')\n"
    "    with open(path, encoding='utf-8') as file:\n"
    "        code = compile(file.read(), path, 'exec')\n"
    "    exec(code, {'__name__': 'kerncap_triton_hook', '__file__': path, 'session': session,\n"
    "                'tuning': tuning, 'compiled': compiled})\n"
    "try:\n"
    "    start(session, tuning, compiled)\n"
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

Object* none() {
  static const auto build = python<Object* (*)(const char*, ...)>("Py_BuildValue");
  return build("");
}

// tuning(begins): the launches that this thread makes from now on only time an autotuner's candidates.
Object* tuning(Object* /*self*/, Object* arguments) {
  static const auto item = python<Object* (*)(Object*, std::ptrdiff_t)>("PyTuple_GetItem");
  static const auto truth = python<int (*)(Object*)>("PyObject_IsTrue");
  Object* begins = item(arguments, 0);
  const int value = begins != nullptr ? truth(begins) : -1;
  if (value < 0) return nullptr;
  set_tuning(value == 1);
  return none();
}

// compiled(symbol, code): the id that the kernel of this code has in captures and statistics.
Object* compiled(Object* /*self*/, Object* arguments) {
  static const auto item = python<Object* (*)(Object*, std::ptrdiff_t)>("PyTuple_GetItem");
  static const auto utf8 = python<const char* (*)(Object*)>("PyUnicode_AsUTF8");
  static const auto bytes = python<int (*)(Object*, char**, std::ptrdiff_t*)>("PyBytes_AsStringAndSize");
  static const auto text = python<Object* (*)(const char*)>("PyUnicode_FromString");
  Object* symbol = item(arguments, 0);
  Object* code = symbol != nullptr ? item(arguments, 1) : nullptr;
  const char* name = code != nullptr ? utf8(symbol) : nullptr;
  char* data = nullptr;
  std::ptrdiff_t size = 0;
  if (name == nullptr || bytes(code, &data, &size) != 0) return nullptr;
  return text(id_text(add_triton_code(name, {data, static_cast<std::size_t>(size)})).c_str());
}

// Puts a function of this library into a dictionary.
bool set_function(Object* names, MethodDef& method) {
  static const auto make = python<Object* (*)(MethodDef*, Object*, Object*)>("PyCFunction_NewEx");
  static const auto set_item = python<int (*)(Object*, const char*, Object*)>("PyDict_SetItemString");
  static const auto release = python<void (*)(Object*)>("Py_DecRef");
  Object* function = make(&method, nullptr, nullptr);
  if (function == nullptr) return false;
  const bool done = set_item(names, method.name, function) == 0;
  release(function);
  return done;
}

bool has_python(std::initializer_list<const char*> names) {
  return std::all_of(names.begin(), names.end(),
                     [](const char* name) { return ::dlsym(RTLD_DEFAULT, name) != nullptr; });
}

// With the GIL held.
void start() {
  static bool started = false;
  if (started) return;
  started = true;
  if (!has_python({"PyDict_New", "PyDict_SetItemString", "PyUnicode_DecodeFSDefault", "PyRun_StringFlags",
                   "PyErr_Clear", "Py_DecRef", "Py_BuildValue", "PyTuple_GetItem", "PyObject_IsTrue",
                   "PyUnicode_AsUTF8", "PyBytes_AsStringAndSize", "PyUnicode_FromString",
                   "PyCFunction_NewEx"})) {
    return;
  }
  static std::array<MethodDef, 2> methods{
      {{"tuning", tuning, kVarargs, nullptr}, {"compiled", compiled, kVarargs, nullptr}}};
  const auto new_dict = python<Object* (*)()>("PyDict_New");
  const auto set_item = python<int (*)(Object*, const char*, Object*)>("PyDict_SetItemString");
  const auto decode = python<Object* (*)(const char*)>("PyUnicode_DecodeFSDefault");
  const auto run = python<Object* (*)(const char*, int, Object*, Object*, void*)>("PyRun_StringFlags");
  const auto clear = python<void (*)()>("PyErr_Clear");
  const auto release = python<void (*)(Object*)>("Py_DecRef");
  Object* names = new_dict();
  Object* directory = decode(session().c_str());
  if (names != nullptr && directory != nullptr && set_item(names, "session", directory) == 0 &&
      set_function(names, methods[0]) && set_function(names, methods[1])) {
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
