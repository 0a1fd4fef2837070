"""Variants that fault or never end, from the edit to the exit code: what is said of them (R4, R5)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from whole import built, document, extracted, kerncap, rebuilt

from kerncap.cli.extract_command import Patience
from kerncap.core.extract.capture_run import Progress
from support.build import build_program

pytestmark = built
EDITED = "if (i < n) x[i] ="


@pytest.fixture(scope="module")
def advance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extracted("in_place", "advance", tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize(("old", "new"), [("77", "100000000"), ("3", "-100000000")])
def test_a_fault_names_the_copy_and_one_distance(
    advance: Path, tmp_path: Path, old: str, new: str
) -> None:  # R4
    variant = rebuilt(advance, EDITED, f"if (i < n) x[i + (i == {old}) * {new}] =")
    line = 1 + (advance / "kernel_variant.cpp").read_text().split(EDITED)[0].count("\n")
    verdict = document("validate", str(advance), "--hsaco", variant, cwd=tmp_path, code=1)
    reason = verdict["reason"]
    assert f", kernel_variant.cpp:{line}, instruction" in reason
    assert "in_place.hip" not in reason
    ((distance, side, ident),) = re.findall(r"(\d+) bytes (past the end of|before) region (\d+)", reason)
    assert "nearest allocation" not in reason
    address = int(verdict["fault_address"], 16)
    regions = document("inspect", str(advance), cwd=tmp_path)["capture"]["regions"]
    region = next(r for r in regions if r["id"] == int(ident))
    start = int(region["address"], 16)
    assert int(distance) == (start - address if side == "before" else address - start - region["bytes"])
    assert "lane" in reason
    (x,) = (
        int(argument["pointer"]["address"], 16)
        for argument in document("inspect", str(advance), cwd=tmp_path)["capture"]["arguments"]
        if argument["name"] == "x"
    )
    told = f"It is {address - x} bytes after where the argument x points, the nearest one below."
    assert (told in reason) is (address > x)
    assert ("where the argument" in reason) is (address > x)
    again = document("validate", str(advance), cwd=tmp_path)
    assert again["verdict"] == "IDENTICAL"


def test_a_fault_of_other_code_keeps_its_own_file(advance: Path, tmp_path: Path) -> None:
    variant = rebuilt(advance, EDITED, "if (i < n) x[i + (i == 77) * 100000000] =")
    elsewhere = tmp_path / "other.hsaco"
    elsewhere.write_bytes(Path(variant).read_bytes())
    shown = kerncap("validate", str(advance), "--hsaco", str(elsewhere), cwd=tmp_path, code=1).stdout
    assert "in_place.hip:" in shown
    assert "kernel_variant.cpp" not in shown


def test_a_fault_in_an_inlined_function_names_the_kernels_line_too_and_watch_says_it_once(
    advance: Path, tmp_path: Path
) -> None:
    source = advance / "kernel_variant.cpp"
    original = source.read_text()
    before, kernel = original.split("extern", 1) if "extern" in original else original.split("__global__", 1)
    helper = "static __device__ inline void poke(float* at, float value) {\n  *at = value;\n}\n"
    edited = kernel.replace(EDITED, "if (i == 77) poke(x + 100000000, scale);\n  if (i < n) x[i] =")
    text = before + helper + original[len(before) : len(original) - len(kernel)] + edited
    stored, called = (1 + text.split(part)[0].count("\n") for part in ("*at = value", "poke(x +"))
    source.write_text(text)
    try:
        shown = kerncap("watch", "--once", str(advance), cwd=tmp_path, code=1).stdout
    finally:
        source.write_text(original)
    assert f", kernel_variant.cpp:{stored}, called at kernel_variant.cpp:{called}, instruction" in shown
    assert shown.count("not allocated") == 1
    assert ": FAIL (" in shown


def test_a_kernel_that_faults_in_the_program_is_not_kept_and_that_is_said(tmp_path: Path) -> None:
    program = str(build_program("wild").executable)
    words = ("scatter", "-o", "out", "--", program, "--shift", "100000000")
    error = document("extract", *words, cwd=tmp_path, code=5)["error"]
    assert "while the captured dispatch of scatter ran: the kernel itself ended it" in error
    assert "Nothing is kept" in error
    assert list(tmp_path.iterdir()) == []


def test_a_captured_dispatch_that_does_not_end_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    patience = Patience("sim:gfx942", 40.0)
    for stage, seconds in (("saving", 9.0), ("running", 0.5), ("running", 7.0), ("running", 8.0)):
        patience.look("k", Progress(stage, seconds=seconds))
    (line,) = capsys.readouterr().err.splitlines()
    assert "k: the captured dispatch has not ended after 7 s" in line
    assert "it is given up after 40 s (--timeout), or by the simulator's own limit (KERNCAP_SIM" in line
