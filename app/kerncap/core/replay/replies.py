"""What kerncap-replay answers, as Python has it, and how words are written (native/replay/protocol.h)."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote_to_bytes

import numpy as np
import numpy.typing as npt

from kerncap.core.errors import KerncapError
from kerncap.core.replay.launch import Launch

RUN_DTYPE = np.dtype(
    [
        ("address", "<u8"),
        ("bytes", "<u8"),
        ("different", "<u8"),
        ("data_offset", "<u8"),
        ("region", "<u4"),
        ("flags", "<u4"),
    ]
)
NO_DATA = (1 << 64) - 1
DATA_LIMIT = 1 << 30  # of the bytes of differing runs, as they are and as they should be
TIMES = np.dtype([("start", "<u8"), ("end", "<u8")])
RANGES = np.dtype([("address", "<u8"), ("bytes", "<u8")])
SCOPES = np.dtype([("region", "<u8"), ("bytes", "<u8")])


class KernelFault(KerncapError):
    """The kernel faulted on the device. `address` is what it touched, 0 where that is not known."""

    exit_code = 1

    def __init__(self, message: str, address: int = 0) -> None:
        super().__init__(message, address=address)
        self.address = address


class KernelTimeout(KerncapError):
    """The kernel did not end within its limit."""

    exit_code = 1


@dataclass
class Reply:
    """The answer to one request."""

    values: dict[str, str] = field(default_factory=dict)
    data: dict[str, bytes] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def integer(self, key: str) -> int:
        return int(self.values[key], 0)

    def noted(self, key: str) -> list[str]:
        return [text for name, text in self.notes if name == key]


@dataclass(eq=False)
class Variant:
    """A code object as loaded in the replayer: number 0 is the captured one."""

    launch: Launch
    number: int = -1
    generation: int = -1  # of the process that has it
    base: int = 0  # where its lowest segment is
    unmatched: tuple[str, ...] = ()  # module variables of the capture that it does not have
    unmatched_bytes: int = 0  # bytes the application changed that it has no place for
    guessed: int = 0  # words of its variables that point into it, at what is not known by name


@dataclass(frozen=True)
class Differences:
    """What a comparison found. `runs` is of RUN_DTYPE, by address; their bytes are in `data`."""

    runs: npt.NDArray[np.void]
    data: npt.NDArray[np.uint8]
    compared: int
    different: int
    seconds: float
    compared_in: dict[int, int] = field(default_factory=dict)  # bytes compared, by region

    @property
    def lost(self) -> npt.NDArray[np.void]:
        """Runs whose bytes are not in `data`: there was more of it than its limit."""
        found: npt.NDArray[np.void] = self.runs[self.runs["data_offset"] == NO_DATA]
        return found


@dataclass(frozen=True)
class RangeList:
    """A set of bytes: how many, in how many ranges, and the first 4096 of those (address, bytes)."""

    bytes: int
    count: int
    ranges: npt.NDArray[np.void]


def range_list(reply: Reply) -> RangeList:
    """The set of bytes that a reply carries."""
    return RangeList(
        reply.integer("bytes"), reply.integer("ranges"), np.frombuffer(reply.data["ranges"], RANGES)
    )


def taken(path: Path) -> npt.NDArray[np.uint8]:
    """The bytes of a file that nobody else needs, which is removed. They are mapped, so that pages which
    have been looked at can go again.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b""
    path.unlink()
    return np.frombuffer(mapped, np.uint8)


def escape(text: str) -> str:
    """A word of a request."""
    if text in ("", "-"):
        return "-" if not text else "%2D"
    return "".join(
        f"%{byte:02X}" if byte <= 32 or byte in (37, 127) else chr(byte) if byte < 127 else f"%{byte:02X}"
        for byte in text.encode("utf-8", "surrogateescape")
    )


def unescape(word: str) -> str:
    """What a word of a reply says."""
    return "" if word == "-" else os.fsdecode(unquote_to_bytes(word))
