"""Single-source HIP programs on the simulated GPU: each checks its own results against the host."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

import pytest

from rocm.build import ARCHES, Built
from rocm.running import Run

# The first test waits for the packages, where they are not here yet.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

Build = Callable[..., Built]
Runner = Callable[..., Run]


def right(done: Run) -> None:
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ok\n"), done.stdout


NAMES = ["copies", "launches", "streams", "allocations", "graph", "cooperative", "device_heap", "threads"]
NAMES += ["signalling", "rtc"]


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", NAMES)
def test_its_results_are_right(build: Build, run: Runner, name: str, arch: str) -> None:
    right(run(build(name).path, device=arch))


@pytest.mark.parametrize(
    ("name", "option"),
    [
        *((name, "-O0") for name in ("copies", "launches", "streams", "graph", "device_heap")),
        *((name, "-fgpu-rdc") for name in ("launches", "cooperative")),
        ("launches", "--offload-compress"),
    ],
)
@pytest.mark.parametrize("arch", ARCHES)
def test_however_it_is_compiled(build: Build, run: Runner, name: str, option: str, arch: str) -> None:
    # comgr 7.0's cache takes one compressed bundle for another.
    right(run(build(name, [option]).path, device=arch, AMD_COMGR_CACHE="0"))


def test_queues_of_64_packets_wrap_around(build: Build, run: Runner) -> None:
    right(run(build("streams").path, ROC_AQL_QUEUE_SIZE="64"))
    right(run(build("launches").path, "2000", ROC_AQL_QUEUE_SIZE="64"))
    right(run(build("graph").path, ROC_AQL_QUEUE_SIZE="64"))


@pytest.mark.parametrize("arch", ARCHES)
def test_several_devices(build: Build, run: Runner, arch: str) -> None:
    done = run(build("devices").path, device=f"{arch}x2")
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


@pytest.mark.parametrize("arch", ARCHES)
def test_a_failed_assertion_is_printed_and_ends_the_program(build: Build, run: Runner, arch: str) -> None:
    done = run(build("assertion").path, device=arch)
    assert done.code == -signal.SIGABRT, done.stdout + done.stderr
    assert "before\n" in done.stdout
    failed = [line for line in done.stderr.splitlines() if "Device-side assertion" in line]
    assert len(failed) == 64
    assert all("checks(int *, int)" in line and "too large" in line for line in failed)
    # The place is counted from the function that it is in, which need not lie behind the kernel.
    assert re.search(
        r"trap in kernel checks\(.*\(\+0x[0-9a-f]{1,5}\).* In function __assert_fail", done.stderr
    )
