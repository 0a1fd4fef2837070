"""What a JIT function is made of: its text, the JIT functions it calls, module constants and imports.

One entry a module of the program, with the parts of it that are used. Modules of Triton, torch and the
standard library are imported where they are used; other modules are kept by the parts used, under the names
they have there.
"""

import __future__

import ast
import builtins
import inspect
import sys
import textwrap
import types

from kerncap_triton_hook.values import Unsupported, expression

_LIBRARIES = {"triton", "torch", "torch_npu", "numpy"}
_STANDARD = set(getattr(sys, "stdlib_module_names", ())) - {"__main__"}
_GENERATED = "torch._inductor.runtime.compile_tasks."  # modules of the program's own, for all their name
_DECORATORS = {"JITFunction": "triton.jit", "ConstexprFunction": "triton.constexpr_function"}


def is_jit(value):
    """Whether it is a function that Triton compiles, or calls while it compiles."""
    return type(value).__name__ in _DECORATORS and hasattr(value, "fn") and hasattr(value, "src")


def _library(module):
    if module.startswith(_GENERATED):
        return False
    top = module.partition(".")[0]
    return top in _LIBRARIES or top in _STANDARD


def _importable(value):
    """(module, name) by which an object of a library can be imported; None where it cannot."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not _library(module):
        return None
    return (module, name) if getattr(sys.modules.get(module), name, None) is value else None


class Closure:
    """The parts of all modules that a kernel needs. `unresolved` maps names to why they are missing."""

    def __init__(self):
        self.modules = {}
        self.unresolved = {}
        self._values = {}

    def _module(self, name, scope):
        return self.modules.setdefault(
            name,
            {
                "file": scope.get("__file__") or "",
                "future": False,
                "imports": {},
                "constants": {},
                "functions": {},
            },
        )

    def add_function(self, function):
        """Adds a JIT function and all that it uses. Returns (module, name) of where it stands."""
        fn = function.fn
        name, module = fn.__name__, fn.__module__
        entry = self._module(module, fn.__globals__)
        if name in entry["functions"]:
            if self._values[module, name] is not function:
                raise Unsupported(f"two functions named {name} in {module}")
            return module, name
        if name in entry["constants"] or name in entry["imports"]:
            raise Unsupported(f"two things named {name} in {module}")
        self._values[module, name] = function
        entry["future"] = entry["future"] or bool(fn.__code__.co_flags & __future__.annotations.compiler_flag)
        raw = getattr(function, "raw_src", None) or inspect.getsourcelines(fn)[0]
        entry["functions"][name] = {
            "source": function.src,
            "decorator": self._decorator(function),
            "file": fn.__code__.co_filename,
            "line": getattr(function, "starting_line_number", fn.__code__.co_firstlineno),
            "raw": "".join(raw) if isinstance(raw, list) else None,
            "qualname": fn.__qualname__,
        }
        self._add_names(function, module)
        return module, name

    @staticmethod
    def _decorator(function):
        words = [
            f"{word}={value!r}"
            for word, value in (
                ("noinline", getattr(function, "noinline", None)),
                ("debug", getattr(function, "debug", None)),
            )
            if value
        ]
        text = _DECORATORS[type(function).__name__]
        return "{}({})".format(text, ", ".join(words)) if words else text

    def _add_names(self, function, module):
        fn = function.fn
        tree = ast.parse(textwrap.dedent(function.src)).body[0]
        scope = dict(fn.__globals__)
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
            try:
                scope[name] = cell.cell_contents
            except ValueError:
                continue
        parameters = {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
        stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        outside = [*tree.args.defaults, *(d for d in tree.args.kw_defaults if d is not None)]
        outside += [
            a.annotation for a in ast.walk(tree) if isinstance(a, ast.arg) and a.annotation is not None
        ]
        in_header = {n.id for part in outside for n in ast.walk(part) if isinstance(n, ast.Name)}
        attributes = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                attributes.setdefault(node.value.id, set()).add(node.attr)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            name = node.id
            if (name in parameters and name not in in_header) or name not in scope:
                continue
            value = scope[name]
            if value is function or getattr(builtins, name, scope) is value:
                continue
            try:
                self.need(module, fn.__globals__, name, value, attributes.get(name, ()))
            except Unsupported as problem:
                if name not in stored:
                    self.unresolved[f"{module}.{name}"] = str(problem)

    def need(self, module, scope, name, value, attributes=()):
        """Adds what `name` is in `module`. Raises Unsupported."""
        entry = self._module(module, scope)
        known = self._values.get((module, name), self)
        if known is not self and known is not value and not (type(known) is type(value) and known == value):
            raise Unsupported(f"two values of {name} in {module}")
        self._values.setdefault((module, name), value)
        if isinstance(value, types.ModuleType):
            self._need_module(entry, name, value, attributes)
        elif is_jit(value) and not _library(value.fn.__module__):
            del self._values[module, name]
            home, own = self.add_function(value)
            if (home, own) != (module, name):
                self._values[module, name] = value
                entry["imports"][name] = ["own", home, own]
        elif _importable(value) is not None:
            entry["imports"][name] = ["from", *_importable(value)]
        elif (
            is_jit(value) and getattr(sys.modules.get(value.fn.__module__), value.fn.__name__, None) is value
        ):
            entry["imports"][name] = ["from", value.fn.__module__, value.fn.__name__]
        else:
            text = expression(value, lambda part: self.name_in(module, scope, part))
            annotation = scope.get("__annotations__", {}).get(name)
            entry["constants"][name] = [text, "constexpr" in str(annotation)]

    def _need_module(self, entry, name, value, attributes):
        if _library(value.__name__):
            entry["imports"][name] = ["import", value.__name__, ""]
            return
        self._module(value.__name__, vars(value))
        entry["imports"][name] = ["own", value.__name__, ""]
        for attribute in attributes:
            if hasattr(value, attribute):
                self.need(value.__name__, vars(value), attribute, getattr(value, attribute))

    def name_in(self, module, scope, value):
        """The name by which `module` has a JIT function or an object of a library, made known to it."""
        if not is_jit(value) and _importable(value) is None:
            return None
        name = value.fn.__name__ if is_jit(value) else value.__name__
        self.need(module, scope, name, value)
        return name
