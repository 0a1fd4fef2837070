"""How wide the elements are that a kernel stores, by its instructions, for memory of no declared type.

A kernel that stores 32 bits at a time writes elements of 32 bits. That says nothing of what they mean: they
are compared as unsigned numbers. Only where every store is an atomic operation on floats are they floats.
Source: LLVM AMDGPUUsage and the "CDNA3 ISA" reference, names of FLAT, GLOBAL and MUBUF instructions.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path

from kerncap.core.native import DISASSEMBLER, find_native

_STORE = re.compile(r"(?:flat|global|buffer)_store_(byte|short|dword)(x[234])?(?:_d16_hi)?\Z")
_ATOMIC = re.compile(r"(?:flat|global|buffer)_atomic_(\w+?)(?:_rtn)?\Z")
_SCALAR = re.compile(r"s_(?:buffer_)?(store|atomic)_\w+\Z")
_OTHER = re.compile(r"(?:buffer|tbuffer)_store_format_\w+\Z")  # as wide as a descriptor says
_LEAVES = frozenset({"s_swappc_b64", "s_setpc_b64"})  # to other functions, which may store too
_BYTES = {"byte": 1, "short": 2, "dword": 4}
_SECONDS = 10.0


def element_type(instructions: Iterable[str]) -> str | None:
    """The dtype of what the instructions (mnemonics) store: "u32", "f32", ...; None where they do not tell.

    Two dwords at once are one element of 64 bits, where nothing narrower is stored; more are dwords.
    """
    widths: set[int] = set()
    kinds: set[str] = set()
    for name in instructions:
        if _OTHER.match(name):
            return None
        store, atomic = _STORE.match(name), _ATOMIC.match(name)
        if store is not None:
            kinds.add("bits")
            widths.add(8 if store[2] == "x2" else _BYTES[store[1]])
        elif atomic is not None:
            kind = re.search(r"(bf16|f16|f32|f64)\Z", atomic[1])
            kinds.add(kind[1] if kind else "bits")
            wide = atomic[1].endswith(("_x2", "f64"))
            widths.add(8 if wide else 2 if "pk_" in atomic[1] else 4)
        elif _SCALAR.match(name):
            kinds.add("bits")
            widths.add(4)
    if not widths:
        return None
    if len(kinds) == 1 and "bits" not in kinds:
        return kinds.pop()
    return f"u{8 * min(widths)}"


def stored_type(code: Path, arch: str, symbol: str) -> str | None:
    """The dtype that the kernel `symbol` of a code object stores; None: not known, for whatever reason."""
    own = _mnemonics(code, arch, symbol)
    if own is not None and _LEAVES & own:
        own = _mnemonics(code, arch, None)
    return None if own is None or ".long" in own else element_type(own)


def _mnemonics(code: Path, arch: str, symbol: str | None) -> set[str] | None:
    """The instructions of one function of a code object, or of all of them; None where it cannot be read."""
    tool = find_native(DISASSEMBLER)
    if tool is None:
        return None
    with subprocess.Popen(
        [str(tool), arch, str(code)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        limit = threading.Timer(_SECONDS, process.kill)
        limit.start()
        try:
            found, whole = _collect(process, symbol)
            return found if whole or process.wait() == 0 else None
        finally:
            limit.cancel()
            process.kill()


def _collect(process: subprocess.Popen[str], symbol: str | None) -> tuple[set[str] | None, bool]:
    """The mnemonics, and whether the function was seen to its end."""
    assert process.stdout is not None
    found: set[str] | None = set() if symbol is None else None
    for line in process.stdout:
        if line.startswith("\t"):
            if found is not None:
                found.add(line.split(maxsplit=1)[0])
        elif symbol is not None:
            if found is not None:
                return found, True
            if line.rstrip(":\n") == symbol:
                found = set()
    return found, False
