"""The simulated gfx90a: programs give there what they give on gfx942, and kerncap's loop closes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kerncap.demo import build
from support.build import build_program, simulator_environment
from support.package import APP

DEVICE = "sim:gfx90a"


@pytest.mark.parametrize(
    ("name", "arguments", "printed"),
    [
        ("in_place", ["--launches", "7"], "in_place: 7 launches"),
        ("pointers", [], "pointers: 15.0 190"),
        ("variables", [], "variables: 3 calls"),
        ("float_atomics", [], "float_atomics: ok"),
        ("endless", [], "endless: ended"),
        ("wild", [], "wild: ok"),
        ("templates", [], "templates: 117.0"),
        ("streams", ["--rounds", "100"], "streams: 3 busy, 10 launches"),
        ("processes", ["--mode", "fork"], "processes: fork, 2 children"),
        ("memory_kinds", [], "memory_kinds: ok"),
        ("special_values", [], "special_values: ok"),
    ],
)
def test_program(name: str, arguments: list[str], printed: str) -> None:
    program = build_program(name, "gfx90a")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("KERNCAP_", "LD_PRELOAD"))}
    done = subprocess.run(
        [str(program.executable), *arguments],
        env={**environment, **simulator_environment("gfx90a")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout


def kerncap(*words: str, cwd: Path) -> str:
    environment = {**os.environ, "KERNCAP_DEVICE": DEVICE, "PYTHONPATH": str(APP)}
    command = [sys.executable, "-m", "kerncap", *words]
    done = subprocess.run(command, cwd=cwd, env=environment, text=True, timeout=240, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_two_of_them(tmp_path: Path) -> None:
    program = str(build_program("in_place", "gfx90a").executable)
    assert "sim:gfx90ax2: 2 dispatches" in kerncap(
        "profile", "--device", "sim:gfx90ax2", "--", program, cwd=tmp_path
    )


def test_the_costs_are_its_own(tmp_path: Path) -> None:
    assert "gfx90a (MI250X)" in kerncap("doctor", "--costs", cwd=tmp_path)


def test_the_loop(tmp_path: Path) -> None:
    """Profile, extract, replay, rebuild and validate on the demonstration program."""
    demo = build(tmp_path / "decoder", device=DEVICE, tokens=2)
    shown = kerncap("profile", "--", *demo.command, cwd=tmp_path)
    assert "MI250X (simulated) (gfx90a" in shown
    assert f"{DEVICE}: " in shown
    words = ["--cmd", " ".join(demo.command), "--source-dir", str(demo.source_dir)]
    assert "IDENTICAL" in kerncap("extract", "mul_mat_vec_q", *words, cwd=tmp_path)
    reproducer = tmp_path / "isolated" / "mul_mat_vec_q"
    assert "us (simulated)" in kerncap("replay", str(reproducer), "--iterations", "2", cwd=tmp_path)
    make = ["make", "-C", str(reproducer), "recompile"]
    subprocess.run(make, check=True, timeout=200, capture_output=True)
    rebuilt = str(reproducer / "optimized.hsaco")
    assert "IDENTICAL" in kerncap("validate", str(reproducer), "--hsaco", rebuilt, cwd=tmp_path)
