"""What the statistics say of programs that run on the simulated GPU."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
from watching import LIMIT_S, environment, executable, plain, watched


@pytest.mark.parametrize("timing", [True, False])
def test_every_dispatch_is_counted(timing: bool) -> None:
    """C17 in small: the program's own count, at its end, kernel by kernel."""
    with watched("launches", "--launches", "60000", timing=timing) as run:
        assert run.finish() == 0, run.err
        process = run.only()
        assert process.exited
        assert process.simulated
        assert process.dispatches == 60000
        assert (process.timed, process.rejected, process.lost) == ((60000, 0, 0) if timing else (0, 0, 0))
        assert {name: kernel.calls for name, kernel in run.kernels().items()} == {"tick": 54000, "tock": 6000}
        for kernel in run.kernels().values():
            assert kernel.timed == (kernel.calls if timing else 0)
            assert kernel.histogram.sum() == kernel.timed
            if timing:
                assert 0 < kernel.min_ns <= kernel.mean_ns <= kernel.max_ns
                assert kernel.total_ns == round(kernel.mean_ns * kernel.timed)


def peak(launches: int) -> int:
    with watched("launches", "--launches", str(launches)) as run:
        memory = run.peak_memory()
        assert run.finish() == 0, run.err
        process = run.only()
        assert process.dispatches == process.timed == launches
        return memory


def test_memory_does_not_grow_with_dispatches() -> None:
    assert peak(150_000) < peak(15_000) + 4096  # KiB


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_three_million_dispatches() -> None:
    """C17."""
    assert peak(3_000_000) < peak(15_000) + 4096  # KiB


def test_what_a_kernels_first_dispatch_takes_is_counted_once() -> None:
    """Its names and resources are read then: that is no measure of what the next ones cost."""
    with watched("steady", "--count", "10") as run:
        began = time.monotonic_ns()
        assert run.finish() == 0, run.err
        assert 0 < run.snapshot().total("own_ns") < time.monotonic_ns() - began


@pytest.mark.parametrize("intercept", ["batch", "single"])
@pytest.mark.parametrize("options", [(), ("--single",)])
@pytest.mark.parametrize("timing", [True, False])
def test_all_packets_of_a_batch(timing: bool, options: tuple[str, ...], intercept: str) -> None:
    """C3; and the program's own completion signals keep their counts and timestamps."""
    bare = plain("batches", *options)
    with watched("batches", *options, timing=timing, KERNCAP_SIM_INTERCEPT=intercept) as run:
        assert run.finish() == bare.returncode == 7, run.err
        assert (run.out, run.err) == (bare.stdout, "")
        process = run.only()
        assert process.dispatches == 12
        assert (process.timed, process.rejected, process.lost) == ((12, 0, 0) if timing else (0, 0, 0))
        assert {k.name: k.calls for k in process.kernels} == {"add_one": 6, "add_two": 6}


def test_streams_are_timed_on_all_queues() -> None:
    with watched("streams", "--launches", "6", "--rounds", "500") as run:
        assert run.finish() == 0, run.err
        process = run.only()
        assert {k.name: (k.calls, k.timed) for k in process.kernels} == {"spin": (18, 18), "target": (6, 6)}
        assert process.lost == process.rejected == process.pending == 0


def test_a_kernels_name_id_and_resources() -> None:
    """C7: instances of one template are told apart, and so is one symbol in two code objects."""
    with watched("templates") as run:
        assert run.finish() == 0, run.err
        kernels = run.only().kernels
        names = sorted(kernel.name for kernel in kernels)
        assert names == [
            "scale_all",
            "twin",
            "twin",
            "void scale<(Kind)0, float>(float*, int)",
            "void scale<(Kind)39, float>(float*, int)",
            "void scale<(Kind)39, int>(int*, int)",
        ]
        assert len({kernel.id for kernel in kernels}) == 6
        for kernel in kernels:
            assert re.fullmatch("[0-9a-f]{16}", kernel.id)
            assert kernel.kind == "hip"
            assert kernel.calls == kernel.timed == 1
            assert kernel.grid == (64, 1, 1)
            assert kernel.block == (64, 1, 1)
            assert 0 < kernel.vgprs <= 512
            assert 0 < kernel.sgprs <= 112
        symbols = {kernel.name: kernel.symbol for kernel in kernels}
        assert symbols["void scale<(Kind)39, int>(int*, int)"] == "_Z5scaleIL4Kind39EiEvPT0_i"


def test_ids_are_the_same_in_every_run() -> None:
    def ids() -> set[str]:
        with watched("templates") as run:
            assert run.finish() == 0
            return {kernel.id for kernel in run.only().kernels}

    assert ids() == ids()


@pytest.mark.parametrize("mode", ["fork", "fork-after", "spawn"])
def test_each_process_has_statistics_of_its_own(mode: str) -> None:
    """C14."""
    with watched("processes", "--mode", mode, "--children", "3") as run:
        assert run.finish() == 0, run.err
        processes = run.snapshot().processes
        counts = sorted(process.dispatches for process in processes)
        assert counts == ([5] if mode == "fork-after" else [5, 6, 7, 8])
        assert all(process.exited and process.dispatches == process.timed for process in processes)
        assert len({process.pid for process in processes}) == len(processes)
        parent = next(process for process in processes if process.pid == run.process.pid)
        assert parent.dispatches == 5
        assert all(process.parent_pid == parent.pid for process in processes if process is not parent)
        assert run.status().processes == len(processes)


def run_once(session: Path | None, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(executable("in_place"))],
        env=environment(session),
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def test_without_a_session_it_is_inert(tmp_path: Path) -> None:
    bare = plain("in_place")
    done = subprocess.run(
        [str(executable("in_place"))],
        env=environment(None),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, bare.stdout, "")
    assert list(tmp_path.iterdir()) == []


def test_a_session_that_is_none_is_said_and_left_alone(tmp_path: Path) -> None:
    bare = plain("in_place")
    (tmp_path / "control").write_bytes(b"KCCTRL01" + bytes(80000))
    for session in (tmp_path, tmp_path / "missing"):
        done = subprocess.run(
            [str(executable("in_place"))],
            env=environment(session),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        assert (done.returncode, done.stdout) == (0, bare.stdout)
        assert done.stderr.startswith(f"kerncap: not watching this process: {session}/control")
        assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["control"]


def test_no_room_for_statistics_does_not_end_the_program() -> None:
    bare = plain("in_place")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))

    with watched("in_place", preexec=limit) as run:
        assert run.finish() == 0
        assert run.out == bare.stdout
        assert "kerncap: statistics are not shown: no room for" in run.err
        assert "File too large (the limit on the size of files, ulimit -f)" in run.err
        assert run.snapshot().processes == []
        assert run.session.unwatched == (
            f"what 1 process dispatched is not known: the statistics file in {run.session.directory} "
            "cannot be made: File too large; raise the limit on the size of files (ulimit -f)"
        )


@pytest.mark.parametrize("mib", [150, 200, 300])
def test_a_limited_address_space_is_the_programs(mib: int) -> None:
    """Statistics take a small part of it: what they have room for without a limit would leave nothing."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))

    # A heap of its own for each thread would take what a thread needs.
    with watched("in_place", preexec=limit, MALLOC_ARENA_MAX="1") as run:
        assert run.finish() == 0, run.err
        assert run.out == plain("in_place").stdout
        assert run.session.unwatched == ""
        assert run.only().dispatches > 0


def test_figures_can_be_read_while_the_program_runs_and_after_it_is_killed() -> None:
    with watched("steady", "--pause-us", "200") as run:
        run.wait_dispatches(50)
        process = run.only()
        assert not process.exited
        assert process.dispatches >= 50
        assert process.timed <= process.dispatches
        run.process.send_signal(signal.SIGKILL)
        assert run.finish() == -signal.SIGKILL
        process = run.only()
        assert not process.exited
        assert process.timed + process.pending + process.rejected + process.lost <= process.dispatches + 1
        assert sum(kernel.calls for kernel in process.kernels) == process.dispatches


def test_the_runtime_and_its_devices_are_named() -> None:
    with watched("in_place", KERNCAP_SIM="gfx942x2") as run:
        assert run.finish() == 0, run.err
        process = run.only()
        assert process.runtime.startswith(os.path.realpath(process.runtime.split()[0]))
        assert [line.split("\t")[:2] for line in process.devices] == [["0", "gfx942"], ["1", "gfx942"]]
        assert process.executable == str(executable("in_place"))
