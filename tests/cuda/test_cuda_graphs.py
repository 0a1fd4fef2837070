"""Kernels that run within graph launches, on the fake driver: counted, and captured one at a time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from driving import Replay, Watched, capture, watch
from fake_machine import FakeGpu

from kerncap.core.capture.records import Capture
from kerncap.core.code.layout import CaptureState
from kerncap.core.program.control import CaptureRequest

N = 1000
START = (np.arange(N) * 37 % 1001).astype(np.float32)


def plain(gpu: FakeGpu, case: str, times: int) -> str:
    done = subprocess.run(
        [str(word) for word in gpu.graphs(case, times)],
        env=gpu.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def take(gpu: FakeGpu, folder: Path, case: str, times: int, nth: int) -> tuple[Watched, Capture | None]:
    watched, taken = capture(
        gpu.graphs(case, times), "saxpy", folder / "c", nth=nth, environment=gpu.environment
    )
    assert (watched.code, watched.errors) == (0, "")
    assert watched.output == plain(gpu, case, times)  # host nodes count themselves there
    return watched, taken


def after(*factors: float) -> np.ndarray:
    """y, once saxpy has run with each of them."""
    y = START.copy()
    for a in factors:
        y = np.float32(a) * START + y
    return y


def check(gpu: FakeGpu, taken: Capture, a: float, before: np.ndarray) -> None:
    """That it is a saxpy with that factor, on memory as it then was; and that it replays."""
    taken.verify()
    data = taken.kernarg.data
    y, x = (int.from_bytes(data[o : o + 8], "little") for o in (0, 8))
    assert np.frombuffer(data[16:20], np.float32)[0] == np.float32(a)
    assert np.array_equal(taken.before(x, 4 * N).view(np.float32), START)
    assert np.array_equal(taken.before(y, 4 * N).view(np.float32), before)
    assert np.array_equal(taken.after(y, 4 * N).view(np.float32), np.float32(a) * START + before)
    assert taken.dispatch.end_ns > taken.dispatch.start_ns
    with Replay(taken, environment=gpu.environment) as replay:
        variant = replay.load()
        replay.run(variant)
        assert replay.differences(variant)[1] == 0


@pytest.mark.parametrize("wanted", [None, 100])
def test_kernels_of_graphs_are_counted_and_timed(gpu: FakeGpu, tmp_path: Path, wanted: int | None) -> None:
    """By their records, and while a capture is wanted as they are launched."""
    request = CaptureRequest("saxpy", tmp_path / "c", nth=wanted) if wanted else None
    watched = watch(gpu.graphs("mixed", 5), environment=gpu.environment, request=request)
    assert watched.output == plain(gpu, "mixed", 5)
    stats = watched.snapshot
    assert watched.calls("saxpy") == 5 * 4 + 1
    assert (stats.total("dispatches"), stats.total("timed"), stats.total("lost")) == (21, 21, 0)
    assert stats.kernels[0].grid == (4 * 256, 1, 1)


def test_kernels_of_one_name_and_different_code_are_told_apart(gpu: FakeGpu) -> None:
    watched = watch(gpu.graphs("names", 5), environment=gpu.environment)
    assert watched.output == plain(gpu, "names", 5)
    stats = watched.snapshot
    assert sorted(k.calls for k in stats.kernels) == [5, 10]
    assert (stats.total("dispatches"), stats.total("timed"), stats.total("lost")) == (15, 15, 0)
    assert sorted(k.timed for k in stats.kernels) == [5, 10]


# Each launch of `mixed` counts, of its graph, 1.5, 0.5, 2 (of another array) and 3 (of a third); after the
# first launch the same kernel is launched with 0.25, by itself.
@pytest.mark.parametrize(
    ("nth", "a", "before"),
    [
        (1, 1.5, ()),
        (2, 0.5, (1.5,)),
        (3, 2, (1.5, 0.5)),  # on the copy that a node before it makes of y
        (4, 3, ()),  # it waits for nothing
        (5, 0.25, (1.5, 0.5)),
        (6, 1.5, (1.5, 0.5, 0.25)),
        (7, 0.5, (1.5, 0.5, 0.25, 1.5)),
        (11, 0.5, (1.5, 0.5, 0.25, 1.5, 0.5, 1.5)),
    ],
)
def test_one_kernel_of_a_graph_is_captured_and_the_rest_runs_once(
    gpu: FakeGpu, tmp_path: Path, nth: int, a: float, before: tuple[float, ...]
) -> None:
    """The graph itself is long destroyed. It is the program's output that tells of the rest."""
    watched, taken = take(gpu, tmp_path, "mixed", 3, nth)
    assert taken is not None, watched.status
    assert taken.dispatch.nth_of_kernel == nth
    check(gpu, taken, a, after(*before))
    assert watched.calls("saxpy") == 3 * 4 + 1
    stats = watched.snapshot
    assert (stats.total("dispatches"), stats.total("timed"), stats.total("lost")) == (13, 13, 0)


def test_a_graph_launch_of_the_threads_own_stream(gpu: FakeGpu, tmp_path: Path) -> None:
    _, taken = take(gpu, tmp_path, "per_thread", 2, 6)
    assert taken is not None
    check(gpu, taken, 0.5, after(1.5, 0.5, 1.5))


def test_a_graph_with_many_more_edges_than_nodes(gpu: FakeGpu, tmp_path: Path) -> None:
    _, taken = take(gpu, tmp_path, "dense", 2, 14)
    assert taken is not None
    check(gpu, taken, 5, after(*range(8), *range(5)))


def test_graphs_recorded_from_a_stream(gpu: FakeGpu, tmp_path: Path) -> None:
    """Launches into the recording run nothing and do not count."""
    watched, taken = take(gpu, tmp_path, "recorded", 2, 5)
    assert taken is not None, watched.status
    check(gpu, taken, 2, after(1, 2, 3, 1))
    assert watched.calls("saxpy") == 6


@pytest.mark.parametrize(
    ("case", "nth", "a", "before"),
    [
        ("changed", 2, 4, (1.5,)),  # cuGraphExecKernelNodeSetParams
        ("changed", 6, 4, (1.5, 4, 1.5)),
        ("changed", 1, 1.5, ()),  # what comes behind is changed, and two nodes that are no kernels
        ("updated_whole", 2, 12, (11,)),  # cuGraphExecUpdate
        ("disabled", 4, 1.5, (1.5,)),  # cuGraphNodeSetEnabled: three kernels a launch
        ("child", 2, 2, (1,)),
        ("child", 3, 3, (1, 2)),
        ("child", 5, 5, (1, 2, 3, 4)),
        ("child", 8, 3, (1, 2, 3, 4, 5, 1, 2)),
        ("replaced", 3, 13, (1, 12)),  # cuGraphExecChildGraphNodeSetParams
        ("replaced", 6, 1, (1, 12, 13, 14, 5)),
    ],
)
def test_graphs_are_followed_through_their_changes(
    gpu: FakeGpu, tmp_path: Path, case: str, nth: int, a: float, before: tuple[float, ...]
) -> None:
    watched, taken = take(gpu, tmp_path, case, 2, nth)
    assert taken is not None, watched.status
    check(gpu, taken, a, after(*before))


def test_a_disabled_node_stays_so_in_the_pieces(gpu: FakeGpu, tmp_path: Path) -> None:
    """The first kernel is captured; the second, disabled, is behind it."""
    watched, taken = take(gpu, tmp_path, "disabled", 2, 1)
    assert taken is not None
    assert watched.calls("saxpy") == 6


def test_how_a_kernel_node_is_launched_is_in_the_capture(gpu: FakeGpu, tmp_path: Path) -> None:
    _, taken = take(gpu, tmp_path, "attributes", 1, 2)
    assert taken is not None
    launch = taken.cuda_launch
    assert launch is not None
    assert (launch.grid, launch.block, launch.cluster) == ((4, 1, 1), (256, 1, 1), (2, 1, 1))
    assert len(launch.attributes) == 1


def test_other_threads_launch_graphs_meanwhile(gpu: FakeGpu, tmp_path: Path) -> None:
    watched, taken = take(gpu, tmp_path, "threads", 6, 100)
    assert taken is not None, watched.status
    taken.verify()
    stats = watched.snapshot
    assert watched.calls("saxpy") == 3 * 6 * (3 * 3 + 1)
    assert (stats.total("dispatches"), stats.total("timed"), stats.total("lost")) == (180, 180, 0)


def test_a_graph_that_never_ends_gives_the_capture_up(gpu: FakeGpu, tmp_path: Path) -> None:
    command = ["timeout", "-s", "KILL", "4", *gpu.graphs("mixed", 1, 5)]
    watched, taken = capture(
        command, "saxpy", tmp_path / "c", nth=2, timeout_s=0.5, environment=gpu.environment
    )
    assert taken is None
    assert watched.status.state is CaptureState.FAILED
    assert "did not complete within 0.5 s" in watched.status.message
    assert list(tmp_path.iterdir()) == []


def test_a_graph_that_the_driver_does_not_copy_is_refused_with_the_reason(
    gpu: FakeGpu, tmp_path: Path
) -> None:
    watched, taken = take(gpu, tmp_path, "alloc", 3, 6)
    assert taken is None
    assert watched.status.state is CaptureState.FAILED
    assert "it allocates or frees memory" in watched.status.message
    assert watched.calls("saxpy") == 12
    assert list(tmp_path.iterdir()) == []


def test_where_the_drivers_functions_cannot_be_hooked_it_says_so(gpu: FakeGpu, tmp_path: Path) -> None:
    watched, taken = capture(
        gpu.graphs("mixed", 3), "saxpy", tmp_path / "c", nth=6, environment=gpu.unhookable
    )
    assert taken is None
    assert "calls of the driver cannot be replaced in this process" in watched.status.message
    assert watched.output == plain(gpu, "mixed", 3)
    assert (watched.calls("saxpy"), watched.snapshot.total("timed")) == (13, 13)


def test_the_program_can_end_with_a_capture_within_a_graph(gpu: FakeGpu, tmp_path: Path) -> None:
    watched, taken = capture(
        gpu.graphs("mixed", 3),
        "saxpy",
        tmp_path / "c",
        nth=6,
        exit_after=True,
        environment=gpu.environment,
    )
    assert taken is not None
    assert (watched.code, watched.output) == (0, "")
