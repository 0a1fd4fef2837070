"""The CUDA interposer, its captures and kerncap-replay-cuda, end to end on a fake driver.

What only a GPU can show is in on_device.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from driving import TIMES, Replay, ReplayError, capture, watch
from fake_machine import FakeGpu

from kerncap.core.capture.reading import read_capture
from kerncap.core.capture.records import Capture, RegionKind
from kerncap.core.code.layout import CaptureState, MemoryMode

Plain = Callable[..., str]
MEMORY = 400000 + (4 << 20)  # y and x
VARIABLES = 16 + 8 + 4


@pytest.fixture(scope="module")
def saxpy(gpu: FakeGpu, tmp_path_factory: pytest.TempPathFactory) -> Capture:
    """The second of three launches."""
    watched, taken = capture(
        gpu.command("saxpy", 3),
        "saxpy",
        tmp_path_factory.mktemp("saxpy") / "capture",
        nth=2,
        environment=gpu.environment,
    )
    assert taken is not None, watched
    return taken


@pytest.fixture
def replay(gpu: FakeGpu, saxpy: Capture) -> Iterator[Replay]:
    with Replay(saxpy, environment=gpu.environment) as started:
        yield started


def test_launches_are_counted_and_timed_and_the_program_prints_the_same(gpu: FakeGpu, plain: Plain) -> None:
    watched = watch(gpu.command("saxpy", 40), environment=gpu.environment)
    assert watched.code == 0
    assert watched.output == plain("saxpy", 40)
    assert watched.errors == ""
    stats = watched.snapshot
    assert (stats.total("dispatches"), stats.total("timed"), stats.total("lost")) == (40, 40, 0)
    (kernel,) = stats.kernels
    assert (kernel.symbol, kernel.calls, kernel.kind, kernel.vgprs) == ("saxpy", 40, "cuda", 16)
    assert kernel.grid == (391 * 256, 1, 1)
    assert kernel.min_ns > 0
    (process,) = stats.processes
    assert process.devices == ["0\tsm_90\tnvptx64-nvidia-cuda--sm_90\tFake GPU"]
    assert process.exited


def test_without_timing_launches_are_still_counted(gpu: FakeGpu) -> None:
    watched = watch(gpu.command("saxpy", 5), environment=gpu.environment, timing=False)
    assert (watched.calls("saxpy"), watched.snapshot.total("timed")) == (5, 0)


def test_without_cupti_the_program_runs_and_is_told_why(gpu: FakeGpu, plain: Plain) -> None:
    watched = watch(
        gpu.command("saxpy", 3), environment={**gpu.environment, "KERNCAP_CUPTI": "/no/libcupti.so"}
    )
    assert (watched.code, watched.output) == (0, plain("saxpy", 3))
    assert "not watching this process" in watched.errors
    assert "/no/libcupti.so" in watched.errors


def test_a_capture_holds_what_the_launch_can_reach(saxpy: Capture) -> None:
    launch = saxpy.cuda_launch
    assert launch is not None
    assert (launch.grid, launch.block, launch.parameters) == (
        (391, 1, 1),
        (256, 1, 1),
        ((0, 8), (8, 8), (16, 4), (20, 4)),
    )
    assert saxpy.dispatch.grid == (391 * 256, 1, 1)
    assert (saxpy.dispatch.nth_of_kernel, saxpy.device.name) == (2, "sm_90")
    assert saxpy.dispatch.end_ns > saxpy.dispatch.start_ns
    memory = {r.bytes for r in saxpy.regions if r.kind is RegionKind.DEVICE}
    assert memory == {400000, 4 << 20}  # neither the allocation that nothing points to, nor the freed one
    saxpy.verify()
    y, x = (int.from_bytes(saxpy.kernarg.data[o : o + 8], "little") for o in (0, 8))
    before, after = (f(y, 400000).view(np.float32) for f in (saxpy.before, saxpy.after))
    source = saxpy.before(x, 400000).view(np.float32)
    assert np.array_equal(after, np.float32(1.5) * source + before)


@pytest.mark.parametrize("files", ["1", "3"])
def test_a_snapshot_in_memory_is_right_however_it_is_written(gpu: FakeGpu, files: str) -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir():
        pytest.skip("no file system in memory")
    environment = {**gpu.environment, "KERNCAP_MEMORY_FILES": files}
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        command = gpu.command("saxpy", 3)
        watched, taken = capture(command, "saxpy", Path(folder) / "c", nth=2, environment=environment)
        assert taken is not None, watched
        taken.verify()
        assert (taken.path / "memory.pre").stat().st_size == taken.pre_bytes
        assert (taken.path / "memory.post").stat().st_size == taken.post_bytes
        with Replay(taken, environment=gpu.environment) as replay:
            variant = replay.load()
            replay.run(variant)
            assert replay.differences(variant)[1] == 0


def test_a_limit_on_the_size_of_files_fails_the_capture_and_not_the_program(
    gpu: FakeGpu, plain: Plain, tmp_path: Path
) -> None:
    """Files of ours that grow past it send the program no SIGXFSZ."""
    command = ["sh", "-c", 'ulimit -f 1024; exec "$0" "$@"', *map(str, gpu.command("saxpy", 2))]
    watched, taken = capture(command, "saxpy", tmp_path / "c", environment=gpu.environment)
    assert taken is None
    assert (watched.code, watched.output) == (0, plain("saxpy", 2)), watched.errors
    assert watched.status.state is CaptureState.FAILED
    assert "memory.pre: File too large (the limit on the size of files, ulimit -f)" in watched.status.message
    assert list(tmp_path.iterdir()) == []


def test_all_memory_is_saved_where_that_is_asked_for(gpu: FakeGpu, tmp_path: Path) -> None:
    _, taken = capture(
        gpu.command("saxpy", 1),
        "saxpy",
        tmp_path / "all",
        memory=MemoryMode.ALL,
        environment=gpu.environment,
    )
    assert taken is not None
    assert {r.bytes for r in taken.regions if r.kind is RegionKind.DEVICE} == {400000, 4 << 20, 20000}


def test_the_program_goes_on_after_a_capture_or_ends_with_it(
    gpu: FakeGpu, plain: Plain, tmp_path: Path
) -> None:
    on, _ = capture(gpu.command("saxpy", 3), "saxpy", tmp_path / "on", environment=gpu.environment)
    assert (on.code, on.output, on.calls("saxpy")) == (0, plain("saxpy", 3), 3)
    ended, taken = capture(
        gpu.command("saxpy", 3), "saxpy", tmp_path / "end", exit_after=True, environment=gpu.environment
    )
    assert taken is not None
    assert (ended.code, ended.output) == (0, "start\n")


def test_a_launch_that_never_ends_gives_the_capture_up(gpu: FakeGpu, tmp_path: Path) -> None:
    output = tmp_path / "endless"
    command = ["timeout", "-s", "KILL", "4", *gpu.command("saxpy", 1, 5)]
    watched, taken = capture(command, "saxpy", output, timeout_s=0.5, environment=gpu.environment)
    assert taken is None
    assert watched.status.state is CaptureState.FAILED
    assert "did not complete within 0.5 s" in watched.status.message
    assert list(tmp_path.iterdir()) == []


def test_the_captured_kernel_gives_the_applications_result(replay: Replay) -> None:
    variant = replay.load()
    assert (replay.run(variant, 3) > 0).all()
    compared, different, _ = replay.differences(variant)
    assert (compared, different) == (MEMORY + VARIABLES, 0)
    assert replay.greeting.values["timer"] == "cupti"
    assert replay.greeting.number("changed_bytes") == replay.capture.changed_bytes()


def test_differences_are_found_in_blocks_that_the_device_hashes(replay: Replay) -> None:
    """x is 4 MiB: whole blocks of it are compared by hash alone."""
    variant = replay.load()
    replay.run(variant)
    region = next(r for r in replay.capture.regions if r.bytes == 4 << 20)
    assert replay.ask("poison", region.id, 4).number("bytes") == 4 << 20
    compared, different, _ = replay.differences(variant)
    assert (compared, different) == (MEMORY + VARIABLES, 4 << 20)
    replay.ask("restore", "changed")
    replay.run(variant)
    assert replay.differences(variant)[1] == 0


def test_altered_bytes_are_put_back_as_they_were(replay: Replay) -> None:
    """The second time from a copy on the device, but only for the same bytes, altered the same way."""
    variant = replay.load()
    regions = {r.bytes: r.id for r in replay.capture.regions}
    x, y = regions[4 << 20], regions[400000]
    altered = [replay.ask("poison", x, 4).number("bytes")]
    replay.ask("keep", x, variant)
    replay.ask("restore", "changed")
    assert replay.differences(variant, against="reference")[1] == 4 << 20
    altered.append(replay.ask("poison", x, 4).number("bytes"))
    assert altered == [4 << 20, 4 << 20]
    assert replay.differences(variant, against="reference")[1] == 0
    replay.ask("restore", "changed")
    silent = replay.ask("poison", y, 1).number("bytes")
    assert 0 < silent < 400000
    assert replay.differences(variant, against="reference")[1] == (4 << 20) + silent
    for granule in (4, 1):
        replay.ask("restore", "changed")
        found = replay.ask("poison", y, granule).number("bytes")
        assert found == silent if granule == 1 else found < silent
        assert replay.differences(variant, against="reference")[1] == (4 << 20) + found


@pytest.mark.parametrize("timer", ["cupti", "event"])
def test_a_batch_is_submitted_ahead_where_kernels_have_records(
    gpu: FakeGpu, saxpy: Capture, timer: str
) -> None:
    environment = {**gpu.environment, "KERNCAP_CUDA_TIMER": timer}
    with Replay(saxpy, environment=environment) as replay:
        answer = replay.ask("run", replay.load(), 2, "warm", 8, "time", "restore", 20)
        own, system = (np.frombuffer(answer.data[name], TIMES) for name in ("times", "events"))
        assert len(own) == len(system) == 16
        assert (own["end"] > own["start"]).all()
        assert (own["start"][1:] >= own["end"][:-1]).all()
        ahead = system["start"][1:8] < system["end"][:7]
        assert ahead.all() if timer == "cupti" else not ahead.any()


@pytest.mark.parametrize(("number", "identical"), [(1, True), (2, False), (3, False)])
def test_variants_are_judged_by_what_they_store(
    gpu: FakeGpu, replay: Replay, number: int, identical: bool
) -> None:
    replay.load()
    variant = replay.load(gpu.cubin(number))
    replay.run(variant, 2)
    assert (replay.differences(variant)[1] == 0) is identical


def test_a_fault_and_an_endless_variant_end_only_their_replayer(gpu: FakeGpu, saxpy: Capture) -> None:
    for number, kind, text in ((4, "fault", "CUDA_ERROR_ILLEGAL_ADDRESS"), (5, "timeout", "within 0.5 s")):
        with Replay(saxpy, environment=gpu.environment) as replay:
            variant = replay.load(gpu.cubin(number))
            with pytest.raises(ReplayError, match=text) as error:
                replay.run(variant, limit_s=0.5)
            assert error.value.kind == kind


def test_events_time_a_kernel_where_cupti_is_not_to_be_used(gpu: FakeGpu, saxpy: Capture) -> None:
    with Replay(saxpy, environment={**gpu.environment, "KERNCAP_CUDA_TIMER": "event"}) as replay:
        assert replay.greeting.values["timer"] == "event"
        assert (replay.run(replay.load(), 3) > 0).all()


@pytest.mark.parametrize("loading", ["FAKE_EAGER", "FAKE_LAZY"])
def test_pointer_tables_and_variables_are_followed_and_put_back(
    gpu: FakeGpu, plain: Plain, tmp_path: Path, loading: str
) -> None:
    environment = {**gpu.environment, loading: "1"}
    watched, taken = capture(
        gpu.command("table", 3), "of_table", tmp_path / "table", nth=2, environment=environment
    )
    assert taken is not None, watched
    assert watched.output == plain("table", 3)
    assert sum(r.bytes == 1200 for r in taken.regions) == 5  # four rows by the table, one by a variable
    assert {"scale", "target", "counter"} <= {v.name for v in taken.variables}
    with Replay(taken, environment=gpu.environment) as replay:
        variant = replay.load()
        replay.run(variant, 3)
        compared, different, _ = replay.differences(variant)
        assert different == 0
        assert compared >= 5 * 1200 + 16 + 8 + 4


def test_mappings_in_a_row_are_one_region(gpu: FakeGpu, plain: Plain, tmp_path: Path) -> None:
    command = gpu.command("mappings", 2)
    watched, taken = capture(command, "saxpy", tmp_path / "rows", nth=2, environment=gpu.environment)
    assert taken is not None, watched
    assert watched.output == plain("mappings", 2)
    assert [r.bytes for r in taken.regions if r.kind is RegionKind.VMEM] == [6 << 20]
    with Replay(taken, environment=gpu.environment) as replay:
        variant = replay.load()
        replay.run(variant)
        assert replay.differences(variant)[1] == 0


def test_what_cannot_be_a_variant_is_refused(gpu: FakeGpu, replay: Replay, tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.cubin"
    nonsense.write_bytes(b"\x7fELF is how it starts" + bytes(100))
    with pytest.raises(ReplayError, match="cannot be loaded on this Fake GPU"):
        replay.load(nonsense)
    with pytest.raises(ReplayError, match="has no kernel missing"):
        replay.load(gpu.cubin(), "missing")
    with pytest.raises(ReplayError, match="2 parameters in 12 bytes, the captured one 4"):
        replay.load(gpu.cubin(), "of_table")


def test_a_damaged_capture_is_named(gpu: FakeGpu, tmp_path: Path) -> None:
    _, taken = capture(gpu.command("saxpy", 1), "saxpy", tmp_path / "c", environment=gpu.environment)
    assert taken is not None
    with (taken.path / "memory.pre").open("r+b") as file:
        file.seek(100)
        byte = file.read(1)
        file.seek(100)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(ReplayError, match=r"memory\.pre: the block at offset 0"):
        Replay(read_capture(taken.path), environment=gpu.environment)
