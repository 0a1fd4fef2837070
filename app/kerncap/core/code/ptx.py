"""PTX, NVIDIA's assembly as text: what is to be read of it without a compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEAD = re.compile(rb"\A(?:\s|//[^\n]*\n)*\.version\b")
_ENTRY = re.compile(rb"\.entry\s+([\w$.]+)")
# Within a line: \s would run from each of many empty lines over all that follow.
_VERSION = re.compile(rb"^[ \t]*\.version[ \t]+([\d.]+)", re.M)
_TARGET = re.compile(rb"^[ \t]*\.target[ \t]+(\w+)", re.M)
_HEAD_BYTES = 1 << 16


def is_ptx(data: memoryview | bytes) -> bool:
    """Whether these bytes begin PTX: a .version, after comments."""
    return _HEAD.match(bytes(data[:_HEAD_BYTES])) is not None


@dataclass(frozen=True)
class Ptx:
    """One module of PTX. `offset` is where it is in its file; `compressed` says that it was there."""

    data: bytes
    offset: int = 0
    compressed: bool = False

    @property
    def version(self) -> str:
        """Of the language, "9.0"; empty where it does not say."""
        found = _VERSION.search(self.data)
        return found[1].decode() if found else ""

    @property
    def target(self) -> str:
        """The least GPU that it is for, "sm_90"; empty where it does not say."""
        found = _TARGET.search(self.data)
        return found[1].decode() if found else ""

    @property
    def kernel_names(self) -> list[str]:
        """Mangled names of the kernels that it defines, in its order."""
        return list(dict.fromkeys(found[1].decode() for found in _ENTRY.finditer(self.data)))
