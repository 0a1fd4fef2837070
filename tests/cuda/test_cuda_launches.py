"""Launches counted by hooked driver functions and timed by sample, on the fake driver."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from driving import Watched, capture, watch
from fake_machine import FakeGpu

import kerncap
from kerncap.cli.profile_command import show
from kerncap.core.code.layout import CaptureState
from kerncap.core.program.live import Snapshot

FIRST = 2000  # launches of a process that are timed whatever its pace
FIRST_OF_EACH = 32
SHARE = 0.02 / 3e-6  # launches of a second that may be timed


def run(gpu: FakeGpu, case: str, times: int, *more: object, timing: bool = True) -> Watched:
    command = gpu.launches(case, times, *more)
    watched = watch(command, environment=gpu.environment, timing=timing)
    assert (watched.code, watched.errors) == (0, "")
    assert watched.output.startswith("hooked\n")
    return watched


def rows(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """Calls and timed, by name."""
    return {k.name: (k.calls, k.timed) for k in snapshot.kernels}


def sampled(snapshot: Snapshot) -> bool:
    (process,) = snapshot.processes
    return process.sampling


def test_a_program_that_launches_slowly_has_every_launch_timed(gpu: FakeGpu) -> None:
    stats = run(gpu, "slow", 150).snapshot
    assert rows(stats) == {"nothing": (150, 150)}
    assert (stats.total("dispatches"), stats.total("lost"), stats.total("pending")) == (150, 0, 0)
    assert not sampled(stats)


def test_one_that_launches_without_a_pause_is_counted_whole_and_timed_in_part(gpu: FakeGpu) -> None:
    watched = run(gpu, "fast", 100_000)
    stats = watched.snapshot
    ((calls, timed),) = rows(stats).values()
    assert calls == stats.total("dispatches") == 100_000
    assert FIRST <= timed == stats.total("timed") <= FIRST + SHARE * watched.wall_s + 100
    assert (stats.total("lost"), stats.total("pending")) == (0, 0)
    assert sampled(stats)


def test_a_profile_of_it_estimates_the_total_from_the_mean(
    gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in gpu.environment.items():
        monkeypatch.setenv(name, value)
    report = kerncap.profile(list(map(str, gpu.launches("fast", 100_000))), device="cuda", stdout=2)
    (kernel,) = report.kernels
    assert (kernel.calls, kernel.estimated, report.sampling) == (100_000, True, True)
    assert kernel.total_ns == pytest.approx(kernel.mean_ns * 100_000)
    assert kernel.min_ns <= kernel.mean_ns <= kernel.max_ns
    assert kernel.percent == 100.0
    assert report.warnings == []
    show(report, 5)
    shown = capsys.readouterr().out
    assert f"100000 dispatches of 1 kernel, {kernel.timed} timed (a sample); the program ran" in shown
    assert f"~{kernel.total_ns / 1e6:.3f}" in shown


def test_windows_open_again_and_again(gpu: FakeGpu) -> None:
    """A tick of the housekeeper earns a window, or a part of one."""
    watched = run(gpu, "fast", 400_000)
    ((_, timed),) = rows(watched.snapshot).values()
    assert timed > FIRST + 32


def test_launches_of_several_threads_are_counted_exactly(gpu: FakeGpu) -> None:
    stats = run(gpu, "fast", 20_000, 4).snapshot
    assert stats.total("dispatches") == rows(stats)["nothing"][0] == 80_000
    assert stats.total("timed") < 80_000


def test_every_launch_function_is_hooked(gpu: FakeGpu) -> None:
    stats = run(gpu, "forms", 500).snapshot
    assert rows(stats)["nothing"][0] == 3000
    (kernel,) = stats.kernels
    assert (kernel.grid, kernel.block) == ((128, 1, 1), (64, 1, 1))
    assert (
        kernel.timed < 3000
    )  # those of any that is not would have been timed, with all others, from then on


def test_a_kernel_that_takes_long_is_timed_every_time(gpu: FakeGpu) -> None:
    """Once that is known of it, which is when its first records have come: within a fifth of a second."""
    found = rows(run(gpu, "rare", 150_000).snapshot)
    assert found["lingers"][0] == 1500
    assert found["lingers"][1] > 800
    assert found["nothing"][0] == 150_000
    assert found["nothing"][1] < 75_000


def test_first_launches_of_each_kernel_are_timed_however_late(gpu: FakeGpu) -> None:
    found = rows(run(gpu, "late", 20_000).snapshot)
    assert found["nothing"][0] == 40_000
    assert found["nothing_else"][0] == 200
    assert FIRST_OF_EACH <= found["nothing_else"][1] < 200


def test_a_launch_that_fails_does_not_count(gpu: FakeGpu) -> None:
    watched = run(gpu, "failing", 3000)
    assert "1000 failed" in watched.output
    assert rows(watched.snapshot)["nothing"][0] == watched.snapshot.total("dispatches") == 2000


def test_launches_by_a_call_that_is_not_hooked_are_counted_by_their_records(gpu: FakeGpu) -> None:
    """cuLaunchGrid, first when no record is made: from then on all are."""
    stats = run(gpu, "old", 10_000).snapshot
    found = rows(stats)
    assert found["nothing_else"] == (5000, 5000)
    assert found["nothing"][0] == 25_000
    assert 15_000 < found["nothing"][1] < 25_000
    assert next(k for k in stats.kernels if k.name == "nothing_else").grid == (96, 1, 1)
    assert stats.total("lost") == 0


def test_kernels_of_one_name_are_told_apart_whether_timed_or_not(gpu: FakeGpu) -> None:
    stats = run(gpu, "names", 5000, gpu.cubin(1)).snapshot
    by_calls = {k.calls: k for k in stats.kernels}
    assert set(by_calls) == {5000, 100}
    assert by_calls[100].timed >= FIRST_OF_EACH
    assert by_calls[100].min_ns > 90_000 > by_calls[5000].mean_ns
    assert sampled(stats)
    assert stats.total("lost") == 0


def test_without_timing_there_is_no_record_and_every_launch_counts(gpu: FakeGpu) -> None:
    watched = run(gpu, "fast", 5000, timing=False)
    assert rows(watched.snapshot) == {"nothing": (5000, 0)}
    assert not sampled(watched.snapshot)
    assert watched.output.endswith("records 0\n")


def test_while_a_capture_is_awaited_launches_count_in_order_and_are_timed(
    gpu: FakeGpu, tmp_path: Path
) -> None:
    command = gpu.launches("fast", 5000)
    watched, taken = capture(command, "nothing", tmp_path / "c", nth=4321, environment=gpu.environment)
    assert taken is not None, watched
    assert (taken.dispatch.nth_of_kernel, watched.calls("nothing")) == (4321, 5000)
    assert taken.dispatch.end_ns > taken.dispatch.start_ns
    assert 4321 <= watched.snapshot.total("timed") <= 5000


def test_the_wanted_launch_is_met_among_those_of_several_threads(gpu: FakeGpu, tmp_path: Path) -> None:
    command = gpu.launches("fast", 2000, 4)
    watched, taken = capture(command, "nothing", tmp_path / "c", nth=7000, environment=gpu.environment)
    assert watched.status.state is CaptureState.DONE
    assert taken is not None
    assert (taken.dispatch.nth_of_kernel, watched.calls("nothing")) == (7000, 8000)


@pytest.mark.parametrize(("case", "calls"), [("fast", 6000), ("forms", 36_000), ("failing", 4000)])
def test_where_functions_cannot_be_hooked_records_count(gpu: FakeGpu, case: str, calls: int) -> None:
    watched = watch(gpu.launches(case, 6000), environment=gpu.unhookable)
    assert (watched.code, watched.errors) == (0, "")
    assert rows(watched.snapshot) == {"nothing": (calls, calls)}
    assert not sampled(watched.snapshot)


def test_a_hooked_launch_costs_next_to_nothing(gpu: FakeGpu) -> None:
    """100 ns here, for whatever else the machine does; where it is idle it is 25."""
    command = [str(word) for word in gpu.launches("pace", 100_000)]
    bare = subprocess.run(
        command, env=gpu.environment, capture_output=True, text=True, timeout=60, check=True
    )
    watched = run(gpu, "pace", 100_000)
    assert rows(watched.snapshot)["nothing"][0] == 20 * 100_000
    assert float(watched.output.split()[-3]) - float(bare.stdout.split()[-3]) < 100


def graphs(gpu: FakeGpu, case: str, times: int, *, timing: bool = True, hooked: bool = True) -> Snapshot:
    environment = gpu.environment if hooked else gpu.unhookable
    watched = watch(gpu.graphs(case, times), environment=environment, timing=timing)
    assert (watched.code, watched.errors) == (0, "")
    return watched.snapshot


def test_kernels_of_graphs_are_counted_whole_and_timed_in_part(gpu: FakeGpu) -> None:
    stats = graphs(gpu, "mixed", 6000)
    ((calls, timed),) = rows(stats).values()
    assert calls == stats.total("dispatches") == 6000 * 4 + 1
    assert FIRST <= timed < calls
    assert sampled(stats)
    assert (stats.total("lost"), stats.total("pending")) == (0, 0)


def test_of_graphs_too_kernels_of_one_name_are_told_apart(gpu: FakeGpu) -> None:
    stats = graphs(gpu, "names", 4000)
    assert sorted(k.calls for k in stats.kernels) == [4000, 8000]
    assert min(k.timed for k in stats.kernels) >= FIRST_OF_EACH
    assert sampled(stats)
    few, many = sorted(stats.kernels, key=lambda k: k.calls)
    assert abs(2 * few.timed - many.timed) < 10  # each launch's records are of one and two


def test_kernels_of_graphs_count_without_timing(gpu: FakeGpu) -> None:
    assert rows(graphs(gpu, "mixed", 500, timing=False)) == {"saxpy": (2001, 0)}


def test_kernels_of_a_graph_that_is_not_known_are_counted_and_timed_by_their_records(gpu: FakeGpu) -> None:
    """Its nodes were disabled when it was updated."""
    stats = graphs(gpu, "unknown", 3000)
    ((calls, timed),) = rows(stats).values()
    assert calls == stats.total("dispatches") == 5000 + 3000 * 2
    assert FIRST + 3000 * 2 <= timed < calls


def test_where_nothing_is_hooked_all_kernels_of_graphs_are_timed(gpu: FakeGpu) -> None:
    assert rows(graphs(gpu, "mixed", 3000, hooked=False)) == {"saxpy": (12_001, 12_001)}


def test_launches_that_are_recorded_into_a_graph_do_not_count(gpu: FakeGpu) -> None:
    assert rows(graphs(gpu, "recorded", 10)) == {"saxpy": (30, 30)}
