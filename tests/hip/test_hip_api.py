"""The small HIP library on the simulated runtime, by programs that use its API."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.build import PROGRAMS, Program, build_single_source

SECTIONS = [
    "device", "errors", "copies", "arguments", "variables", "pointers", "order", "dependencies", "events",
    "many", "modules",
]  # fmt: skip


def run(
    words: list[str], environment: dict[str, str], timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """A program's run, with its output."""
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=timeout)


@pytest.mark.parametrize("section", SECTIONS)
def test_section(section: str, build_program: Callable[[str], Program], simulator: dict[str, str]) -> None:
    done = run([str(build_program("hip_api").executable), section], simulator)
    assert (done.returncode, done.stdout) == (0, f"{section}: ok\n"), done.stderr


def test_every_section_is_tested(build_program: Callable[[str], Program], simulator: dict[str, str]) -> None:
    listed = run([str(build_program("hip_api").executable)], simulator).stdout.split()
    assert sorted(listed) == sorted(SECTIONS)


@pytest.mark.parametrize("packets", ["4", "64"])
def test_launches_wrap_around_a_small_queue(
    packets: str, build_program: Callable[[str], Program], simulator: dict[str, str]
) -> None:
    environment = {**simulator, "ROC_AQL_QUEUE_SIZE": packets}
    for section in ("many", "order", "dependencies"):
        done = run([str(build_program("hip_api").executable), section], environment)
        assert done.returncode == 0, f"{section}: {done.stderr}"


def test_single_source_program(tmp_path: Path, simulator: dict[str, str]) -> None:
    program = build_single_source(PROGRAMS / "single_source.hip", tmp_path)
    done = run([str(program)], simulator)
    assert (done.returncode, done.stdout) == (0, "single_source: ok\n"), done.stderr


def test_no_device_without_the_simulator_or_a_gpu(
    build_program: Callable[[str], Program], simulator: dict[str, str]
) -> None:
    environment = {**simulator, "KERNCAP_SIM": "gfx000"}
    done = run([str(build_program("in_place").executable)], environment)
    assert done.returncode == 2
    assert "no ROCm-capable device is detected" in done.stderr


@pytest.mark.parametrize(
    ("name", "arguments", "printed"),
    [
        ("in_place", [], "in_place: 2 launches"),
        ("in_place", ["--launches", "7"], "in_place: 7 launches"),
        ("pointers", [], "pointers: 15.0 190"),
        ("variables", [], "variables: 3 calls"),
        ("float_atomics", [], "float_atomics: ok"),
        ("endless", [], "endless: ended"),
        ("wild", [], "wild: ok"),
        ("templates", [], "templates: 117.0"),
        ("streams", ["--rounds", "2000"], "streams: 3 busy, 10 launches"),
        ("streams", ["--rounds", "100", "--endless"], "streams: 3 busy, 10 launches"),
        ("processes", ["--mode", "fork"], "processes: fork, 2 children"),
        ("processes", ["--mode", "fork-after"], "processes: fork-after, 2 children"),
        ("processes", ["--mode", "spawn"], "processes: spawn, 2 children"),
        ("memory_kinds", [], "memory_kinds: ok"),
        ("launches", ["--launches", "20000"], "launches: 20000"),
        ("durations", ["--rounds", "20000"], "durations: long "),
        ("special_values", [], "special_values: ok"),
    ],
)
def test_program(
    name: str,
    arguments: list[str],
    printed: str,
    build_program: Callable[[str], Program],
    simulator: dict[str, str],
) -> None:
    done = run([str(build_program(name).executable), *arguments], simulator)
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout


def test_a_wild_access_ends_the_program_as_on_hardware(
    build_program: Callable[[str], Program], simulator: dict[str, str]
) -> None:
    done = run([str(build_program("wild").executable), "--shift", "1000000000"], simulator)
    assert done.returncode == -6  # SIGABRT, as AMD's HIP ends a program whose queue failed
    assert "scatter" in done.stderr
    assert "hip: the GPU queue failed" in done.stderr
