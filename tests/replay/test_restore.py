"""Putting memory back: what it takes, that the capture stays as it is, and files that break while in use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from make_capture import Memory, Spec, write

from kerncap.core.capture.reading import read_capture
from kerncap.core.capture.records import Capture
from kerncap.core.errors import DamagedCaptureError
from kerncap.core.judge.validate import Validator
from kerncap.core.native import REPLAYER, native_path
from kerncap.core.replay.replay import load
from kerncap.core.replay.replayer import Replayer
from kernels import arguments, compile_source, spec

A = 0x7E1000000000
B = A + (1 << 30)
Make = Callable[[Spec], Capture]
EVERY = """extern "C" __global__ void k(unsigned* data, unsigned words) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x; data[i * (words / 256)] += 1; }"""
MIB = 1 << 20


def every_spec(megabytes: int, *, offset: int = 0, zeros: int = 0) -> Spec:
    """A kernel that changes 256 words of a large buffer, the first `zeros` MiB of which are zeros."""
    data = np.random.default_rng(2).integers(0, 1 << 32, megabytes * MIB // 4, np.uint32)
    data[: zeros * MIB // 4] = 0
    after = data.copy()
    after[:: len(data) // 256] += 1
    memory = [Memory(A + offset, data, after)]
    return spec(compile_source(EVERY), "k", memory, arguments(A + offset, np.uint32(len(data))))


def sparse(path: Path, megabytes: int) -> None:
    """Makes the first `megabytes` of memory.pre a hole, as the interposer writes zeros."""
    name = path / "memory.pre"
    content = name.read_bytes()
    with name.open("wb") as file:
        file.seek(megabytes * MIB)
        file.write(content[megabytes * MIB :])


def anonymous_kib(replayer: Replayer) -> int:
    status = Path(f"/proc/{replayer.process.pid}/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0])


def assert_that_files_are_mapped(replayer: Replayer) -> None:
    """Much less memory than the capture is large. Sanitizers (make sanitize) take memory of their own."""
    if b"__asan_init" not in native_path(REPLAYER).read_bytes():
        assert anonymous_kib(replayer) < 16 << 10


@pytest.mark.parametrize("zeros", [0, 48])
def test_what_a_kernel_does_not_write_takes_no_memory(tmp_path: Path, zeros: int) -> None:
    path = write(tmp_path / "capture", every_spec(64, zeros=zeros))
    if zeros:
        sparse(path, zeros)
    with Replayer(read_capture(path)) as replayer:
        replayer.start()
        before = anonymous_kib(replayer)
        with Validator(read_capture(path), replayer=replayer) as validator:
            assert validator.validate(mode="strict").verdict == "IDENTICAL"
        after = anonymous_kib(replayer)
    assert before < 16 << 10  # KiB, of the whole process
    assert after < 32 << 10
    assert (path / "memory.pre").stat().st_blocks * 512 <= (64 - zeros) * MIB + 8192


@pytest.mark.parametrize("offset", [0, 256])  # from a page on: mapped; from within one: copied
def test_the_capture_is_never_written_to(tmp_path: Path, offset: int) -> None:
    path = write(tmp_path / "capture", every_spec(4, offset=offset))
    with Validator(path) as validator:
        assert validator.validate(mode="strict").verdict == "IDENTICAL"
        wrong = compile_source(EVERY.replace("+= 1", "+= 2"))
        assert validator.validate(wrong).verdict == "FAIL"
        validator.replayer.run(validator.baseline().variant, 3)
        assert validator.validate(mode="strict").verdict == "IDENTICAL"
    read_capture(path).verify()


def test_a_buffer_that_is_rewritten(make: Make) -> None:
    """All of it changes: it is copied, not mapped. Slack behind it is watched in both cases."""
    source = """extern "C" __global__ void k(unsigned* data, unsigned n) {
      for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += 256) data[i] = ~data[i]; }"""
    data = np.random.default_rng(3).integers(0, 1 << 32, 5 * MIB // 4 + 3, np.uint32)
    explicit = arguments(A, np.uint32(len(data)))
    captured = spec(compile_source(source), "k", [Memory(A, data, ~data)], explicit)
    with Validator(make(captured)) as validator:
        for mode in ("default", "strict"):
            assert validator.validate(mode=mode).verdict == "IDENTICAL"
            behind = compile_source(source.replace("data[i] = ~data[i];", "data[i] = ~data[i], data[n] = 1;"))
            assert validator.validate(behind, mode).verdict == "FAIL"


def test_a_file_that_is_cut_short_while_in_use(tmp_path: Path) -> None:  # R2
    captured = every_spec(8)
    other = np.random.default_rng(4).integers(0, 1 << 32, 8 * MIB // 4, np.uint32)
    captured.memory.append(Memory(B, other))
    path = write(tmp_path / "capture", captured)
    with Validator(path) as validator:
        assert validator.validate().verdict == "IDENTICAL"
        os.truncate(path / "memory.pre", 10 * MIB)
        with pytest.raises(
            DamagedCaptureError, match=r"memory\.pre can no longer be read at offset"
        ) as error:
            validator.validate(mode="strict")
        assert error.value.exit_code == 6
        offset = int(str(error.value).split("offset ")[1].split(";")[0])
        assert 10 * MIB <= offset < 16 * MIB


def cpu_seconds(replayer: Replayer) -> float:
    words = Path(f"/proc/{replayer.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def test_runs_restore_only_what_was_written(tmp_path: Path) -> None:
    """Between iterations: what one takes does not grow with the capture."""
    captured = every_spec(1)
    small = read_capture(write(tmp_path / "small", captured))
    captured.memory.append(
        Memory(B, np.random.default_rng(5).integers(0, 1 << 32, 256 * MIB // 4, np.uint32))
    )
    large = read_capture(write(tmp_path / "large", captured))
    seconds = []
    for capture in (small, large):
        with Replayer(capture) as replayer:
            variant = load(replayer)
            replayer.run(variant, 10)
            before = cpu_seconds(replayer)
            replayer.run(variant, 400)
            seconds.append(cpu_seconds(replayer) - before)
    assert seconds[1] < 3 * seconds[0] + 0.2, seconds  # to copy 256 MiB takes 0.02 s and more, 400 times


def test_what_the_application_changed_is_counted(make: Make) -> None:
    rng = np.random.default_rng(6)
    captured = every_spec(1)
    for i in range(40):
        before = rng.integers(0, 3, int(rng.integers(1, 70_000)), np.uint8)
        after = np.where(rng.random(len(before)) < 0.3, rng.integers(0, 3, len(before), np.uint8), before)
        at = B + i * 0x20000 + int(rng.integers(0, 64))
        captured.memory.append(Memory(at, before, after.astype(np.uint8)))
    captured.change_granule = 1
    capture = make(captured)
    with Replayer(capture) as replayer:
        assert replayer.changed_bytes == capture.changed_bytes() > 0


@pytest.mark.parametrize("zeros", [0, 40])
def test_memory_in_several_files_is_restored_and_compared(tmp_path: Path, zeros: int) -> None:
    captured = every_spec(100, zeros=zeros, offset=256)  # copied
    captured.memory.append(Memory(B, np.random.default_rng(5).integers(0, 1 << 32, 70 * MIB // 4, np.uint32)))
    captured.files = 3
    path = write(tmp_path / "capture", captured)
    with Validator(path) as validator:
        assert validator.validate(mode="strict").verdict == "IDENTICAL"
        wrong = compile_source(EVERY.replace("+= 1", "+= 2"))
        assert validator.validate(wrong).verdict == "FAIL"
    data = bytearray((path / "memory.pre.2").read_bytes())
    data[3 * MIB + 7] ^= 1
    (path / "memory.pre.2").write_bytes(data)
    with (
        Validator(path) as validator,
        pytest.raises(DamagedCaptureError, match=r"memory\.pre.*does not match its checksum"),
    ):
        validator.validate()


def test_a_region_is_mapped_from_several_files(tmp_path: Path) -> None:
    captured = every_spec(100)
    captured.files = 3
    path = write(tmp_path / "capture", captured)
    with Replayer(read_capture(path)) as replayer:
        replayer.start()
        assert_that_files_are_mapped(replayer)
        with Validator(read_capture(path), replayer=replayer) as validator:
            assert validator.validate(mode="strict").verdict == "IDENTICAL"
    read_capture(path).verify()


def repeating_spec(files: int, filler: int) -> Spec:
    """A kernel that changes block 40 of 80, which are 16 unlike ones and 16 times the same four. Of these,
    blocks 62 to 65 are written, in two files where there are three.
    """
    source = """extern "C" __global__ void k(unsigned* data, unsigned first) {
      data[first + blockIdx.x * blockDim.x + threadIdx.x] += 1; }"""
    data = np.random.default_rng(7).integers(0, 1 << 32, 80 * MIB // 4, np.uint32)
    data[20 * MIB // 4 :] = np.tile(data[:MIB], 15)
    first, after = 40 * MIB // 4 + 100, data.copy()
    after[first : first + 256] += 1
    made = spec(compile_source(source), "k", [Memory(A, data, after)], arguments(A, np.uint32(first)))
    made.files, made.filler = files, filler
    repeated = [block for block in (*range(4), *range(20, 80)) if not 62 <= block < 66]
    made.repeats = [(block, (64, 65, 62, 63)[block % 4]) for block in repeated]
    return made


@pytest.mark.parametrize("filler", [0, 0xA5])
@pytest.mark.parametrize("files", [1, 3])
def test_what_is_written_to_a_repeated_block_stays_there(tmp_path: Path, files: int, filler: int) -> None:
    path = write(tmp_path / "capture", repeating_spec(files, filler))
    with Replayer(read_capture(path)) as replayer:
        replayer.start()
        assert_that_files_are_mapped(replayer)
        with Validator(read_capture(path), replayer=replayer) as validator:
            assert validator.validate(mode="strict").verdict == "IDENTICAL"
            other = compile_source("""extern "C" __global__ void k(unsigned* data, unsigned first) {
              unsigned i = blockIdx.x * blockDim.x + threadIdx.x; data[first + i] += 1;
              data[25 * 262144 + i] += 1; }""")
            verdict = validator.validate(other, mode="strict")
            assert verdict.verdict == "FAIL"
            assert sum(region["mismatches"] for region in verdict.regions) == 256
            assert validator.validate(mode="strict").verdict == "IDENTICAL"
    read_capture(path).verify()


def test_a_repeated_block_is_checked_as_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "capture", repeating_spec(3, 0))
    name = path / "memory.pre.2"  # blocks 64 to 79
    data = bytearray(name.read_bytes())
    data[MIB + 7] ^= 1
    name.write_bytes(data)
    with (
        Validator(path) as validator,
        pytest.raises(
            DamagedCaptureError,
            match=rf"memory\.pre\.2: the block at offset {MIB} does not match its checksum",
        ),
    ):
        validator.validate()


def test_a_repeated_block_is_lost_with_the_file_that_has_its_bytes(tmp_path: Path) -> None:
    path = write(tmp_path / "capture", repeating_spec(3, 0))
    with Validator(path) as validator:
        assert validator.validate().verdict == "IDENTICAL"
        os.truncate(path / "memory.pre.2", MIB)
        with pytest.raises(
            DamagedCaptureError, match=r"memory\.pre\.2 can no longer be read at offset"
        ) as error:
            validator.validate(mode="strict")
        assert MIB <= int(str(error.value).split("offset ")[1].split(";")[0]) < 2 * MIB
