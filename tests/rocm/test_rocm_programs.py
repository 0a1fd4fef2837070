"""Single-source HIP programs on the simulated GPU: each checks its own results against the host."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from rocm.build import Built
from rocm.running import Run

pytestmark = pytest.mark.slow

Build = Callable[..., Built]
Runner = Callable[..., Run]


def right(done: Run) -> None:
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ok\n"), done.stdout


@pytest.mark.parametrize(
    "name", ["copies", "launches", "streams", "allocations", "graph", "cooperative", "device_heap"]
)
def test_its_results_are_right(build: Build, run: Runner, name: str) -> None:
    right(run(build(name).path))


def test_queues_of_64_packets_wrap_around(build: Build, run: Runner) -> None:
    right(run(build("streams").path, ROC_AQL_QUEUE_SIZE="64"))
    right(run(build("launches").path, "2000", ROC_AQL_QUEUE_SIZE="64"))
    right(run(build("graph").path, ROC_AQL_QUEUE_SIZE="64"))


def test_several_devices(build: Build, run: Runner) -> None:
    done = run(build("devices").path, device="gfx942x2")
    right(done)
    assert "devices 2\n" in done.stdout


def test_code_that_is_loaded_while_the_program_runs(build: Build, run: Runner) -> None:
    right(run(build("modules").path, str(build("plugin").path), str(build("module").path)))


def test_what_kernels_print_comes_out_once_and_whole(build: Build, run: Runner) -> None:
    done = run(build("device_heap").path)
    right(done)
    items = sorted(line for line in done.stdout.splitlines() if line.startswith("item "))
    assert items == [f"item {i} of a kernel: {i / 2:.2f} {chr(97 + i)}" for i in range(10)]


def test_a_fault_ends_the_program_as_on_hardware(build: Build, run: Runner) -> None:
    done = run(build("wild").path)
    assert done.code == -signal.SIGABRT, done.stdout + done.stderr
    assert "0x123456789000" in done.stderr
    assert "wild" in done.stderr
