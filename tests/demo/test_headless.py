"""The whole loop on the demonstration program, as `kerncap demo` runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNCAP = [sys.executable, "-m", "kerncap"]


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """kerncap, with a folder of its own for temporary files."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    words = [*KERNCAP, *arguments, "--device", "sim:gfx942"]
    return subprocess.run(
        words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280
    )


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    scratch = tmp_path_factory.mktemp("headless")
    done = run(scratch, "demo", "--headless", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(scratch.iterdir()) == [], "files are left behind"
    loaded = json.loads(done.stdout)
    assert isinstance(loaded, dict)
    return loaded


def test_the_hottest_kernel_is_the_one_that_is_extracted(document: dict) -> None:
    hottest = document["profile"]["kernels"][0]
    assert (hottest["name"], hottest["calls"], hottest["kind"]) == ("mul_mat_vec_q", 504, "hip")
    assert document["profile"]["dispatches"] == 2034
    assert document["extract"]["kernel"] == "mul_mat_vec_q"
    assert document["extract"]["source"]["variant"] == "kernel_variant.cpp"
    assert document["extract"]["baseline"]["verdict"] == "IDENTICAL"


def test_the_documented_edit_is_faster_and_identical(document: dict) -> None:
    edit = document["edit"]
    assert edit["validate"]["verdict"] == "IDENTICAL"
    assert edit["validate"]["compared_bytes"] == 2048  # two vectors of 256 floats
    assert edit["speedup"] > 2.0


def test_the_wrong_edit_fails_at_the_first_value_of_the_gate(document: dict) -> None:
    verdict = document["wrong_edit"]["validate"]
    assert verdict["verdict"] == "FAIL"
    [wrong] = [region for region in verdict["regions"] if region["mismatches"]]
    assert wrong["dtype"] == "f32"
    assert wrong["first"]["index"] == 0
    assert wrong["first"]["expected"] != wrong["first"]["actual"]


def test_it_tells_the_story(tmp_path: Path) -> None:
    done = run(tmp_path, "demo")
    assert done.returncode == 0, done.stdout + done.stderr
    for text in (
        "mul_mat_vec_q",
        "verdict: IDENTICAL",
        "verdict: FAIL",
        "the first: dst_gate[0] at 0x",
        "All as it should be",
    ):
        assert text in done.stdout
    assert str(tmp_path) not in done.stdout  # no command names what is gone
    extract = "$ kerncap extract mul_mat_vec_q --source-dir decoder -o isolated/mul_mat_vec_q -- decoder"
    assert extract in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Next: `kerncap demo --build decoder`")


def test_build_only_puts_a_program_that_the_steps_can_be_typed_for(tmp_path: Path) -> None:
    done = run(tmp_path, "demo", "--build", str(tmp_path / "decoder"))
    assert done.returncode == 0, done.stderr
    command = done.stdout.splitlines()[0].split()
    profiled = subprocess.run(
        [*KERNCAP, "profile", "--device", "sim:gfx942", "--json", "--", *command[:-1], "1"],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert profiled.returncode == 0, profiled.stderr
    assert json.loads(profiled.stdout)["dispatches"] == 113
