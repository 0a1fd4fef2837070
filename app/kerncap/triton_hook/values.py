"""Python expressions that give a value again, exactly: constexprs, compile options, module constants."""

import math
import sys


class Unsupported(Exception):
    """A value that no expression gives again; the message says why."""


def _dtype(value, language):
    for name in ("void", "int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "float8e5", "float8e5b16", "float8e4nv", "float8e4b8", "float8e4b15", "float16", "bfloat16",
                 "float32", "float64"):  # fmt: skip
        if type(value) is language.dtype and getattr(language, name, None) == value:
            return "tl." + name
    element = getattr(value, "element_ty", None)
    if element is not None and type(value).__name__ == "pointer_type":
        return f"tl.pointer_type({_dtype(element, language)})"
    raise Unsupported(f"the type {value}")


def expression(value, name_of=None):
    """The text of an expression that gives `value`. `name_of(value)` is asked for the name of a JIT function
    or of an object of Triton's; it returns None for what it does not know. Raises Unsupported.

    The names that an expression uses without being asked: tl, torch.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes):
        return repr(value)
    if kind is float:
        if math.isfinite(value):
            return repr(value)
        return 'float("%s")' % ("nan" if math.isnan(value) else "inf" if value > 0 else "-inf")
    if kind in (tuple, list):
        parts = [expression(part, name_of) for part in value]
        if kind is list:
            return "[{}]".format(", ".join(parts))
        return "(%s)" % (", ".join(parts) + ("," if len(parts) == 1 else ""))
    if kind is dict:
        return "{{{}}}".format(
            ", ".join(
                f"{expression(key, name_of)}: {expression(part, name_of)}" for key, part in value.items()
            )
        )
    language = sys.modules.get("triton.language")
    if language is not None:
        if isinstance(value, language.constexpr):
            return f"tl.constexpr({expression(value.value, name_of)})"
        if isinstance(value, language.dtype):
            return _dtype(value, language)
        if kind.__name__ == "tuple" and kind.__module__.startswith("triton.language"):
            return f"tl.tuple({expression(list(value.values), name_of)})"
    if kind.__module__ == "torch" and kind.__name__ == "dtype":
        return str(value)
    name = name_of(value) if name_of is not None else None
    if name is not None:
        return name
    raise Unsupported(f"a {kind.__module__}.{kind.__qualname__}")
