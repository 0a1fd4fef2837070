"""A memory file of a capture: one file, or several that its bytes are dealt out to.

The first has the name itself, the others a number behind it: `memory.pre`, `memory.pre.1`, ...
(native/snapshot/stripes.h). A block that has the bytes of another is not written: its bytes are at the
other's place (native/snapshot/layout.h).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kerncap.core.errors import UsageError

STRIPE_BYTES = 32 << 20
MAX_FILES = 64
SETTING = "KERNCAP_MEMORY_FILES"
BLOCK_BYTES = 1 << 20
# <sys/mman.h> on Linux; Python's mmap cannot map at an address.
_MAP_FIXED, _MAP_NORESERVE = 0x10, 0x4000

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class MemoryFiles:
    """`bytes` in all, in `files` files, the first of which is `first`. `repeats`: which block's bytes a block
    has that was not written.
    """

    first: Path
    bytes: int
    files: int = 1
    repeats: Mapping[int, int] = field(default_factory=dict)

    def name(self, number: int) -> str:
        """The file's name without its folder."""
        return f"{self.first.name}.{number}" if number else self.first.name

    def length(self, number: int) -> int:
        """How many bytes the file has."""
        if self.files == 1:
            return self.bytes
        whole, rest = divmod(self.bytes, STRIPE_BYTES)
        turns, last = divmod(whole, self.files)
        return (turns + (number < last)) * STRIPE_BYTES + (rest if number == last else 0)

    def place(self, offset: int) -> tuple[str, int]:
        """The name of the file that holds the byte at `offset`, and its offset there."""
        block, within = divmod(offset, BLOCK_BYTES)
        number, at = self._stripe(self.repeats.get(block, block) * BLOCK_BYTES + within)
        return self.name(number), at

    def _stripe(self, offset: int) -> tuple[int, int]:
        """The number of the file for the byte at `offset`, and its offset there."""
        if self.files == 1:
            return 0, offset
        stripe, within = divmod(offset, STRIPE_BYTES)
        turn, number = divmod(stripe, self.files)
        return number, turn * STRIPE_BYTES + within

    def _parts(self) -> Iterator[tuple[int, int, int]]:
        """What is mapped, in this order: (offset, size, offset of its bytes), the last within one file and
        stripe. Repeats come over what lies at their own place.
        """
        step = STRIPE_BYTES if self.files > 1 else self.bytes
        for offset in range(0, self.bytes, step):
            yield offset, min(step, self.bytes - offset), offset
        begin = size = source = 0
        for block, origin in sorted(self.repeats.items()):
            offset, start = block * BLOCK_BYTES, origin * BLOCK_BYTES
            if size and (begin + size, source + size) == (offset, start) and start % step:
                size += BLOCK_BYTES
                continue
            if size:
                yield begin, size, source
            begin, size, source = offset, BLOCK_BYTES, start
        if size:
            yield begin, size, source

    def map(self) -> Bytes:
        """All of it, read-only. OSError where a file cannot be opened or mapped."""
        if self.bytes == 0:
            return np.zeros(0, np.uint8)
        if self.files == 1 and not self.repeats:
            return np.memmap(self.first, np.uint8, "r", shape=(self.bytes,))
        return self._map_parts()

    def _map_parts(self) -> Bytes:
        libc = _libc()
        # A range of addresses first, which the parts are then mapped over.
        base = _mapped(
            libc.mmap(
                None,
                self.bytes,
                mmap.PROT_READ,
                mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE,
                -1,
                0,
            ),
            self.first,
        )
        memory = (ctypes.c_uint8 * self.bytes).from_address(base)
        weakref.finalize(memory, libc.munmap, base, self.bytes)
        flags = mmap.MAP_SHARED | _MAP_FIXED
        with ExitStack() as stack:
            descriptors = []
            for number in range(self.files):
                descriptors.append(os.open(self.first.parent / self.name(number), os.O_RDONLY | os.O_CLOEXEC))
                stack.callback(os.close, descriptors[-1])
            for offset, size, source in self._parts():
                number, where = self._stripe(source)
                at = libc.mmap(base + offset, size, mmap.PROT_READ, flags, descriptors[number], where)
                _mapped(at, self.first.parent / self.name(number))
        data: Bytes = np.frombuffer(memoryview(memory).cast("B"), np.uint8)
        data.flags.writeable = False
        return data


def check_setting(environment: Mapping[str, str]) -> None:
    """Raises UsageError where KERNCAP_MEMORY_FILES is what the interposer would pass over
    (native/snapshot/block_file.cpp).
    """
    text = environment.get(SETTING, "")
    if text and not (re.fullmatch(r"[0-9]{1,9}", text) and 1 <= int(text) <= MAX_FILES):
        raise UsageError(f"{SETTING}={text!r} is not usable: it takes a whole number from 1 to {MAX_FILES}")


def _mapped(address: int | None, path: Path) -> int:
    if address is None or address == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))
    return address


@lru_cache(1)
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    ]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc
