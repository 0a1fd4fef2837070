"""C++ names for a person, by the machine's own C++ library: as the interposers have them in programs."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1")
_LONGEST = 20_000  # a name is a file's to write, and the library goes as deep as it is nested
_LONGEST_SHOWN = 100_000  # each part that repeats an earlier one may double the name


@lru_cache(maxsize=1)
def _library() -> Any:
    """__cxa_demangle and free; None where the machine has no C++ library, as some containers have none."""
    for name in _LIBRARIES:
        try:
            demangle = ctypes.CDLL(name).__cxa_demangle
            free = ctypes.CDLL(None).free
        except (OSError, AttributeError):
            continue
        # A pointer that is freed: not c_char_p, which would be turned into bytes and lost.
        demangle.restype = ctypes.c_void_p
        demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
        free.argtypes = [ctypes.c_void_p]
        return demangle, free
    return None


@lru_cache(maxsize=4096)
def demangled(symbol: str) -> str:
    """The name as it is written in C++; the symbol itself where it is not mangled, or nothing can read it."""
    library = _library() if symbol.startswith("_Z") and len(symbol) <= _LONGEST else None
    if library is None or "\0" in symbol:
        return symbol
    demangle, free = library
    status = ctypes.c_int()
    at = demangle(symbol.encode("utf-8", "replace"), None, None, ctypes.byref(status))
    if not at:
        return symbol
    text = ctypes.string_at(at).decode("utf-8", "replace")
    free(at)
    return text if status.value == 0 and len(text) <= _LONGEST_SHOWN else symbol


def shown_names(symbols: Sequence[str]) -> list[str]:
    """Demangled, and with the symbol beside it where several are the same in C++."""
    names = [demangled(symbol) for symbol in symbols]
    count = Counter(names)
    return [
        f"{name}  ({symbol})" if count[name] > 1 and name != symbol else name
        for name, symbol in zip(names, symbols, strict=True)
    ]
