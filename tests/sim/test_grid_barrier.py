"""Global wave sync: barriers of a whole grid, as `grid.sync()` has them on gfx90a."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from device_code import compile_device
from simulator import Failed, Simulator, hidden_arguments

SOURCE = Path(__file__).with_name("grid_barrier.hip")
GROUPS = 37


@pytest.fixture
def code(code_directory: Path) -> Path:
    return compile_device(SOURCE, "-O3", code_directory, "gfx90a")


def launch(code: Path, kernel: str, arguments: str, grid: int, block: int) -> list[str]:
    hidden = hidden_arguments(code).get(kernel)
    where = [] if hidden is None else [f"hidden {hidden}"]
    return [f"kernarg {arguments}", *where, f"launch {kernel} {grid} 1 1 {block} 1 1 0"]


def rounds(code: Path, broken: int = 0) -> list[str]:
    return launch(code, "rounds", f"ptr numbers ptr wrong i32 5 i32 {broken}", 256 * GROUPS, 256)


def run(simulator: Simulator, code: Path, *lines: str, before: tuple[str, ...] = ()) -> list[str]:
    memory = [f"alloc {name} {4 * GROUPS}" for name in ("numbers", "wrong")]
    dumps = [f"dump {name} {simulator.directory / name}" for name in ("numbers", "wrong")]
    script = "\n".join([*before, f"load {code}", *memory, *lines, *dumps]) + "\n"
    try:
        return simulator.execute(script).splitlines()
    except Failed as failed:
        return failed.output.splitlines()


def right(simulator: Simulator) -> bool:
    numbers, wrong = (
        np.frombuffer((simulator.directory / n).read_bytes(), np.uint32) for n in ("numbers", "wrong")
    )
    return bool((numbers == 5).all() and not wrong.any())


@pytest.mark.parametrize("order", ["threads 1", "threads 3", "deterministic"])
@pytest.mark.parametrize("set_up", [True, False])
def test_no_workgroup_passes_before_all_have_come(
    simulator: Simulator, code: Path, order: str, set_up: bool
) -> None:
    """A replayed kernel has no dispatch before it that sets the counter up: it does without."""
    before = launch(code, "set_up", f"u32 {GROUPS - 1}", 64, 64) if set_up else []
    answers = run(simulator, code, *before, *rounds(code), before=(order,))
    assert answers[-3].startswith("ok"), answers
    assert right(simulator)


def test_waiting_costs_the_time_of_the_latest_whatever_the_host_does(
    simulator: Simulator, code: Path
) -> None:
    counts = set()
    for order in ("threads 1", "threads 2", "threads 4"):
        answer = run(simulator, code, *rounds(code), before=(order,))[-3]
        counts.add(re.sub(r"address=\S+", "", answer))
    assert len(counts) == 1


def test_a_barrier_that_not_all_reach_is_stopped(simulator: Simulator, code: Path) -> None:
    before = launch(code, "set_up", f"u32 {GROUPS}", 64, 64)
    answers = run(simulator, code, *before, *rounds(code), before=("seconds 0.5",))
    assert answers[-3].startswith("fault stopped"), answers


def test_a_fault_leaves_no_wave_counted(simulator: Simulator, code: Path) -> None:
    answers = run(simulator, code, *rounds(code, broken=3), *rounds(code), before=("seconds 20",))
    launches = [answer for answer in answers if answer.startswith("fault") or "cycles=" in answer]
    assert launches[0].startswith("fault trap")
    assert launches[1].startswith("ok")
    assert right(simulator)
