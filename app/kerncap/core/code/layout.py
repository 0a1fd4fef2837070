"""The session's shared files as numpy structured dtypes: the same layout as native/live/layout.h.

`tests/core/test_layout.py` compiles a program against that header and compares every offset and size.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

VERSION = 1
CONTROL_MAGIC = b"KCCTRL01"
LIVE_MAGIC = b"KCLIVE01"

ROW_BYTES = 512
MAX_ROWS = 65536
ROWS_OFFSET = 4096
NAMES_OFFSET = ROWS_OFFSET + ROW_BYTES * MAX_ROWS
MAX_NAME_BYTES = 256 << 20
PATTERN_BYTES = 65536
PATH_BYTES = 4096


class RequestKind(enum.IntEnum):
    """What the front end asks of the interposer."""

    NONE = 0
    CAPTURE = 1
    CANCEL = 2


class MemoryMode(enum.IntEnum):
    """Which memory a capture holds."""

    REACHABLE = 0
    ALL = 1


class CaptureState(enum.IntEnum):
    """How far a capture has come."""

    IDLE = 0
    ARMED = 1
    DRAINING = 2
    SAVING = 3
    RUNNING = 4
    SAVING_CHANGES = 5
    DONE = 6
    FAILED = 7
    CANCELLED = 8
    AMBIGUOUS = 9

    @property
    def busy(self) -> bool:
        """A process is in the middle of capturing."""
        return CaptureState.DRAINING <= self <= CaptureState.SAVING_CHANGES

    @property
    def final(self) -> bool:
        """Nothing more will happen to this request."""
        return self >= CaptureState.DONE


class KernelKind(enum.IntEnum):
    """Who made a kernel."""

    UNKNOWN = 0
    HIP = 1
    TRITON = 2
    INDUCTOR = 3
    TENSILE = 4
    CUDA = 5
    RUNTIME = 6


class ProcessState(enum.IntEnum):
    """Whether the process behind a statistics file still counts."""

    RUNNING = 0
    EXITED = 1


class ClockKind(enum.IntEnum):
    """What the nanoseconds of a process are."""

    GPU = 0
    SIMULATED = 1


def _struct(fields: list[Any]) -> np.dtype[np.void]:
    return np.dtype(fields, align=True)


CONTROL = _struct(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("bytes", "<u4"),
        ("front_pid", "<u4"),
        ("timing", "<u4"),
        ("unwatched", "<u4"),
        ("unwatched_error", "<u4"),
        ("reserved0", "u1", (32,)),
        ("request_sequence", "<u8"),
        ("request", "<u4"),
        ("memory", "<u4"),
        ("nth", "<u8"),
        ("timeout_ms", "<u8"),
        ("exit_after", "<u4"),
        ("pattern_exact", "<u4"),
        ("grid", "<u4", (3,)),
        ("only_pid", "<u4"),
        ("pattern", f"S{PATTERN_BYTES}"),
        ("output", f"S{PATH_BYTES}"),
        ("accepted_sequence", "<u8"),
        ("state", "<u4"),
        ("owner_pid", "<u4"),
        ("bytes_done", "<u8"),
        ("bytes_total", "<u8"),
        ("started_ns", "<u8"),
        ("saved_ns", "<u8"),
        ("finished_ns", "<u8"),
        ("processes", "<u8"),
        ("message", f"S{PATH_BYTES}"),
    ]
)

LIVE_HEADER = _struct(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("row_bytes", "<u4"),
        ("max_rows", "<u4"),
        ("pid", "<u4"),
        ("parent_pid", "<u4"),
        ("clock", "<u4"),
        ("start_realtime_ns", "<u8"),
        ("start_monotonic_ns", "<u8"),
        ("state", "<u4"),
        ("row_count", "<u4"),
        ("name_bytes", "<u8"),
        ("dispatches", "<u8"),
        ("timed", "<u8"),
        ("rejected", "<u8"),
        ("lost", "<u8"),
        ("pending", "<u8"),
        ("own_ns", "<u8"),
        ("updated_ns", "<u8"),
        ("executable", "S1024"),
        ("devices", "S1024"),
        ("runtime", "S256"),
        ("message", "S1024"),
        ("allocated", "<u8"),
        ("sampling", "<u4"),
    ]
)

_ROW_FIELDS = [
    ("id", "<u8"),
    ("name_offset", "<u8"),
    ("demangled_offset", "<u8"),
    ("name_length", "<u4"),
    ("demangled_length", "<u4"),
    ("kind", "<u4"),
    ("device", "<u4"),
    ("calls", "<u8"),
    ("timed", "<u8"),
    ("total_ns", "<u8"),
    ("min_ns", "<u8"),
    ("max_ns", "<u8"),
    ("last_ns", "<u8"),
    ("last_seen_ns", "<u8"),
    ("code_hash", "<u8"),
    ("grid", "<u4", (3,)),
    ("block", "<u4", (3,)),
    ("vgprs", "<u4"),
    ("sgprs", "<u4"),
    ("lds_bytes", "<u4"),
    ("scratch_bytes", "<u4"),
    ("last_dynamic_lds", "<u4"),
    ("slowest", "<u4"),
    ("histogram", "<u4", (64,)),
    ("tuning", "<u8"),
]

# One row as the header declares it, and as it lies in the file: padded to ROW_BYTES.
ROW_STRUCT = _struct(_ROW_FIELDS)


def _padded_row() -> np.dtype[np.void]:
    fields = ROW_STRUCT.fields
    assert fields is not None
    names = [field[0] for field in _ROW_FIELDS]
    padded: Any = {
        "names": names,
        "formats": [fields[name][0] for name in names],
        "offsets": [fields[name][1] for name in names],
        "itemsize": ROW_BYTES,
    }
    dtype: np.dtype[np.void] = np.dtype(padded)
    return dtype


ROW = _padded_row()

assert ROW_STRUCT.itemsize <= ROW_BYTES
assert LIVE_HEADER.itemsize <= ROWS_OFFSET
