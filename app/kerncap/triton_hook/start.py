"""Puts the hook into this program: Triton's modules are patched once they are imported.

Executed by native/interpose/common/python_hook.cpp with these globals: `__file__`; `session`, its directory;
`tuning(begins)`, which says that this thread's launches only time an autotuner's candidates; and
`compiled(symbol, code)`, which tells of code that Triton made and returns its kernel's id. What fails is
written into the session, so that a reproducer can say why it has no source; the program never sees it.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import traceback
import types

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_RECORDS = os.path.join(session, "triton")  # type: ignore[name-defined]  # noqa: F821 - given by who executes this


def _module(name):
    """A module of this folder, executed without a trace of it in sys.path or __pycache__."""
    path = os.path.join(_FOLDER, name + ".py")
    module = types.ModuleType("kerncap_triton_hook." + name)
    module.__file__ = path
    sys.modules[module.__name__] = module
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec")
    exec(code, module.__dict__)
    return module


class _Patching(importlib.abc.Loader):
    """The module's own loader, and the patch after it."""

    def __init__(self, loader, patch):
        self._loader, self._patch = loader, patch

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        module.__spec__.loader = module.__loader__ = self._loader
        self._patch(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it asks the path's finder for the modules that are patched."""

    def __init__(self, patches):
        self._patches = patches

    def find_spec(self, name, path=None, target=None):
        patch = self._patches.get(name)
        if patch is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Patching(spec.loader, patch)
        return spec


def _start():
    os.makedirs(_RECORDS, mode=0o700, exist_ok=True)
    sys.modules.setdefault("kerncap_triton_hook", types.ModuleType("kerncap_triton_hook"))
    _module("elf_text")
    _module("values")
    _module("closure")
    watch = _module("watch")
    watch.RECORDS = _RECORDS
    watch.TUNING, watch.COMPILED = tuning, compiled  # type: ignore[name-defined]  # noqa: F821
    _module("inductor_cache")
    inductor = _module("inductor")
    patches = {**watch.PATCHES, **inductor.PATCHES}
    patches = {name: watch.guarded(patch) for name, patch in patches.items()}
    sys.meta_path.insert(0, _Finder(patches))
    for name, patch in patches.items():
        if name in sys.modules:
            patch(sys.modules[name])


try:
    _start()
except Exception:
    with open(os.path.join(_RECORDS, f"problem-{os.getpid()}.txt"), "a", encoding="utf-8") as problem:
        problem.write(traceback.format_exc())
