"""The statistics reader against a file that grows, and one that is damaged."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from kerncap.core.code import layout
from kerncap.core.errors import UsageError
from kerncap.core.extract.extract_running import extract_running
from kerncap.core.program.control import CaptureRequest, Session
from kerncap.core.program.live import LiveReader


class Writer:
    """A process's statistics file."""

    def __init__(self, path: Path, names_bytes: int = 4096) -> None:
        self.path = path
        self.size = layout.NAMES_OFFSET + names_bytes
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.used = 0
        self.map()
        self.header["magic"] = layout.LIVE_MAGIC
        self.header["version"] = layout.VERSION
        self.header["row_bytes"] = layout.ROW_BYTES

    def map(self) -> None:
        os.ftruncate(self.fd, self.size)
        self.memory = mmap.mmap(self.fd, self.size)
        self.header = np.frombuffer(self.memory, layout.LIVE_HEADER, 1)
        self.rows = np.frombuffer(self.memory, layout.ROW, layout.MAX_ROWS, layout.ROWS_OFFSET)

    def add(self, name: str, calls: int = 1, ns: int = 10) -> int:
        data = name.encode()
        if layout.NAMES_OFFSET + self.used + len(data) > self.size:
            self.size += max(len(data), 1 << 16)
            self.map()
        index = int(self.header["row_count"][0]) + 1
        begin = layout.NAMES_OFFSET + self.used
        self.memory[begin : begin + len(data)] = data
        row = self.rows[index : index + 1]
        row["id"] = index
        row["name_offset"] = row["demangled_offset"] = self.used
        row["name_length"] = row["demangled_length"] = len(data)
        row["calls"], row["timed"], row["total_ns"] = calls, calls, calls * ns
        row["min_ns"], row["max_ns"] = ns, ns
        self.used += len(data)
        self.header["row_count"] = index
        return index


def test_rows_and_names_that_come_later_are_seen(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "1-1.live")
    writer.add("first")
    with LiveReader(tmp_path) as reader:
        assert [k.name for k in reader.snapshot().kernels] == ["first"]
        writer.add("n" * 100_000, calls=2)
        assert {len(k.name): k.calls for k in reader.snapshot().kernels} == {5: 1, 100_000: 2}
        second = Writer(tmp_path / "2-1.live")
        second.add("first", calls=4)
        snapshot = reader.snapshot()
        assert len(snapshot.processes) == 2
        assert {k.calls for k in snapshot.kernels} == {5, 2}


def test_launches_of_an_autotuner_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Summed like calls; and who names a kernel and a dispatch of a running program means none of them."""
    asked: list[CaptureRequest] = []

    def take(_: Session, request: CaptureRequest) -> None:
        asked.append(request)
        raise UsageError("asked")

    monkeypatch.setattr(Session, "request_capture", take)
    with Session.create() as session:
        for name in ("1-1.live", "2-1.live"):
            writer = Writer(session.directory / name)
            writer.rows["tuning"][writer.add("tuned_kernel", calls=5)] = 2
        with LiveReader(session.directory) as reader:
            (kernel,) = reader.snapshot().kernels
        assert (kernel.calls, kernel.tuning) == (10, 4)
        ids = {"tuned": "tuned_kernel", kernel.id: kernel.id}
        for pattern, dispatch in (("tuned", 2), ("tuned", 0), (kernel.id, 2)):
            with pytest.raises(UsageError, match="asked"):
                extract_running(pattern, session, dispatch=dispatch, output=tmp_path / "out")
            wanted = ids[pattern] if dispatch else kernel.id
            assert (asked[-1].pattern, asked[-1].nth, asked[-1].exact) == (wanted, dispatch, True)


def test_counters_never_step_back(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "1-1.live")
    index = writer.add("k", calls=10, ns=5)
    with LiveReader(tmp_path) as reader:
        assert reader.snapshot().kernels[0].calls == 10
        writer.rows["calls"][index] = 7  # as a copy that met older values would see it
        writer.rows["total_ns"][index] = 1
        kernel = reader.snapshot().kernels[0]
        assert (kernel.calls, kernel.total_ns) == (10, 50)


def test_every_row_of_the_table(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "1-1.live")
    for index in range(layout.MAX_ROWS - 1):
        writer.rows["calls"][index + 1] = 1
        writer.rows["id"][index + 1] = index + 1
    writer.rows["calls"][0] = 9
    writer.header["row_count"] = layout.MAX_ROWS - 1
    with LiveReader(tmp_path) as reader:
        kernels = reader.snapshot().processes[0].kernels
    assert len(kernels) == layout.MAX_ROWS
    assert sum(k.calls for k in kernels) == layout.MAX_ROWS - 1 + 9
    assert kernels[0].name == "(kernels beyond the table)"


def test_a_process_says_whether_it_times_a_sample(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "1-1.live")
    writer.add("k")
    with LiveReader(tmp_path) as reader:
        assert not reader.snapshot().processes[0].sampling
        writer.header["sampling"] = 1
        assert reader.snapshot().processes[0].sampling


def test_damaged_and_foreign_files_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "1-1.live").write_bytes(b"")
    (tmp_path / "2-1.live").write_bytes(b"x" * 8192)
    newer = Writer(tmp_path / "3-1.live")
    newer.header["version"] = layout.VERSION + 1
    cut = Writer(tmp_path / "4-1.live")
    cut.add("k")
    cut.rows["name_offset"][1] = 1 << 40
    (tmp_path / "5-1.live").symlink_to("/etc/passwd")
    (tmp_path / "6-1.live").mkdir()
    os.mkfifo(tmp_path / "7-1.live")
    with LiveReader(tmp_path) as reader:
        processes = reader.snapshot().processes
    assert [k.name for p in processes for k in p.kernels] == ["(kernel 0000000000000001)"]


def test_sizes_are_those_of_the_last_dispatch(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "1-1.live")
    first, second = writer.add("first"), writer.add("second")
    writer.rows["grid"][first], writer.rows["grid"][second] = (64, 1, 1), (128, 2, 1)
    with LiveReader(tmp_path) as reader:

        def grids() -> dict[str, tuple[int, int, int]]:
            return {k.name: k.grid for k in reader.snapshot().kernels}

        before = reader.snapshot()
        assert grids() == {"first": (64, 1, 1), "second": (128, 2, 1)}
        writer.rows["grid"][second] = (256, 2, 1)
        assert grids() == {"first": (64, 1, 1), "second": (256, 2, 1)}
        writer.add("third")
        assert grids()["third"] == (0, 0, 0)
        assert {k.name: k.grid for k in before.kernels}["second"] == (128, 2, 1)  # a snapshot stays as it is


def test_kernels_come_by_their_time_and_unordered_ones_are_the_same(tmp_path: Path) -> None:
    writer, other = Writer(tmp_path / "1-1.live"), Writer(tmp_path / "2-1.live")
    writer.add("cold", ns=1)
    other.add("cold", ns=2)
    writer.add("hot", calls=3)
    with LiveReader(tmp_path) as reader:
        snapshot = reader.snapshot()
    assert [(k.name, k.total_ns) for k in snapshot.kernels] == [("hot", 30), ("cold", 3)]
    assert sorted(k.id for k in snapshot.unordered) == sorted(k.id for k in snapshot.kernels)
