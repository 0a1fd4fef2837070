"""C++ names for a person, by the machine's own C++ library: as the interposers have them in programs."""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1")
_LONGEST = 20_000  # a name is a file's to write, and the library goes as deep as it is nested
_LONGEST_SHOWN = 100_000  # each part that repeats an earlier one may double the name
# What repeats an earlier part (Itanium C++ ABI, 5.1.10, "Compression"; template parameters), and what repeats
# its pattern for each of a pack. Looked for in the whole text: what an identifier has of it counts as well.
_REPEATS = re.compile(r"[ST][0-9A-Z]*_")
_PACK = "Dp"
# log2 of the characters that a name may come to before it is demangled elsewhere: of 170,000 symbols of LLVM,
# rocBLAS, GGML and libstdc++ 30 are beyond it, and are right all the same.
_MOST_BITS = 26
_CHILD_S = 2.0
_CHILD_BYTES = 512 << 20
_MOST_GIVEN_UP = 3  # a file that has one such name can have thousands
_given_up: list[str] = []
# Run as a program of its own: the library cannot be stopped, and signals wait for it.
_CHILD = """
import ctypes, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[3]),) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[4]),) * 2)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
demangle = ctypes.CDLL(sys.argv[1]).__cxa_demangle
demangle.restype = ctypes.c_void_p
demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
at = demangle(sys.stdin.buffer.read(), None, None, None)
if at:
    libc = ctypes.CDLL(None)
    libc.strnlen.restype = ctypes.c_size_t
    libc.strnlen.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    sys.stdout.buffer.write(ctypes.string_at(at, libc.strnlen(at, int(sys.argv[2]) + 1)))
"""


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
    if _bits(symbol) > _MOST_BITS:
        return _elsewhere(symbol)
    demangle, free = library
    status = ctypes.c_int()
    at = demangle(symbol.encode("utf-8", "replace"), None, None, ctypes.byref(status))
    if not at:
        return symbol
    text = ctypes.string_at(at).decode("utf-8", "replace")
    free(at)
    return text if status.value == 0 and len(text) <= _LONGEST_SHOWN else symbol


def _bits(symbol: str) -> float:
    """log2 of how long the name can be at most, without demangling it.

    A part that is referred to c times takes the name to 1 + c times its length, and r references in all to 3
    to the r/3rd (the most where each part repeats the one before three times); both are limits.
    """
    count = Counter(_REPEATS.findall(symbol))
    repeats = min(sum(math.log2(1 + c) for c in count.values()), count.total() * math.log2(3) / 3)
    return math.log2(len(symbol)) * max(1, symbol.count(_PACK)) + repeats


def _elsewhere(symbol: str) -> str:
    """The name by a child that has so much time and memory; the symbol where it takes more."""
    if len(_given_up) >= _MOST_GIVEN_UP:
        return symbol
    for name in _LIBRARIES:
        words = [name, _LONGEST_SHOWN, _CHILD_BYTES, math.ceil(_CHILD_S)]
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _CHILD, *map(str, words)],
                input=symbol.encode("utf-8", "replace"),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_CHILD_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            break
        except (OSError, ValueError):
            continue
        text = done.stdout.decode("utf-8", "replace")
        if done.returncode == 0 and len(text) <= _LONGEST_SHOWN:
            return text or symbol
    _given_up.append(symbol)
    return symbol


def shown_names(symbols: Sequence[str]) -> list[str]:
    """Demangled, and with the symbol beside it where several are the same in C++."""
    names = [demangled(symbol) for symbol in symbols]
    count = Counter(names)
    return [
        f"{name}  ({symbol})" if count[name] > 1 and name != symbol else name
        for name, symbol in zip(names, symbols, strict=True)
    ]
