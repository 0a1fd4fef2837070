"""The memory files of captures that are made in a program: stripes, holes, blocks that repeat others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from checking import captured, checked, pointer
from watching import watched

from kerncap.core.capture import records
from kerncap.core.code.layout import CaptureState
from kerncap.core.judge.validate import Validator
from kerncap.core.program.control import CaptureRequest

Wish = Callable[..., CaptureRequest]


@pytest.mark.parametrize("files", [1, 3])
def test_large_memory_is_whole(wish: Wish, files: int) -> None:
    """Many blocks, several threads: the bytes are the program's."""
    request = wish("add_one")
    variables = {"KERNCAP_MEMORY_FILES": str(files)}
    with watched("steady", "--big", "200", "--count", "3", request=request, **variables) as run:
        assert run.finish() == 0, run.err
        status = run.status()
        assert status.state == CaptureState.DONE, status
        assert status.bytes_done == status.bytes_total
    capture = checked(request)
    assert len(list(capture.path.glob("memory.pre*"))) == capture.pre_files == files
    data = pointer(capture, 0)
    region = capture.region_at(data)
    assert region.bytes == 200 << 20
    expected = (np.arange((200 << 20) // 4, dtype=np.uint64) * 2654435761 | 1).astype(np.uint32)
    assert np.array_equal(np.frombuffer(capture.before(data, region.bytes).tobytes(), np.uint32), expected)
    expected[:64] += 1
    assert np.array_equal(np.frombuffer(capture.after(data, region.bytes).tobytes(), np.uint32), expected)


@pytest.mark.parametrize("files", [1, 3])
def test_a_repeated_block_is_written_once(wish: Wish, files: int) -> None:
    request = wish("add_one")
    variables = {"KERNCAP_MEMORY_FILES": str(files)}
    words = 1 << 18  # of 1 MiB
    arguments = ("--big", "200", "--period", str(words), "--count", "3")
    with watched("steady", *arguments, request=request, **variables) as run:
        assert run.finish() == 0, run.err
    capture = checked(request)
    assert capture.pre_files == files
    # Blocks that are saved at the same time, before any of them is on the disk, are written each.
    assert len(capture.repeats[0]) > 150
    stored = sum(path.stat().st_blocks for path in capture.path.glob("memory.pre*")) * 512
    assert stored <= capture.pre_bytes - (len(capture.repeats[0]) - 1) * records.CHECKSUM_BLOCK
    data = pointer(capture, 0)
    expected = np.tile((np.arange(words, dtype=np.uint64) * 2654435761 | 1).astype(np.uint32), 200)
    assert np.array_equal(capture.before(data, 200 << 20).view(np.uint32), expected)
    expected[:64] += 1
    assert np.array_equal(capture.after(data, 200 << 20).view(np.uint32), expected)
    with Validator(capture.path) as validator:
        assert validator.validate(mode="strict").verdict == "IDENTICAL"


def test_a_repeated_block_of_what_the_kernel_wrote_is_written_once(wish: Wish) -> None:
    request = wish("add_one")
    words = 1 << 18  # of 1 MiB
    arguments = ("--big", "9", "--items", str(8 * words), "--period", str(words), "--count", "1")
    with watched("steady", *arguments, request=request) as run:
        assert run.finish() == 0, run.err
    capture = checked(request)
    assert len(capture.repeats[1]) >= 6
    assert capture.post_bytes >= 8 << 20
    assert (capture.path / "memory.post").stat().st_blocks * 512 <= 2 << 20
    data = pointer(capture, 0)
    expected = np.tile((np.arange(words, dtype=np.uint64) * 2654435761 | 1).astype(np.uint32), 9)
    expected[: 8 * words] += 1
    assert np.array_equal(capture.after(data, 9 << 20).view(np.uint32), expected)
    with Validator(capture.path) as validator:
        assert validator.validate(mode="strict").verdict == "IDENTICAL"


def test_zeros_cost_no_disk(wish: Wish, tmp_path: Path) -> None:
    capture = captured(wish("add_one"), "kinds", "--vmem")  # 4 MiB, of which 4000 bytes are set
    assert capture.pre_bytes > 4 << 20
    assert (capture.path / "memory.pre").stat().st_blocks * 512 < 1 << 20
