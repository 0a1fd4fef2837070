"""The situations R1-R10 of tests/CASES.md from end to end: a program, the command lines, the exit codes.

R4 and R5 are in test_faults.py and test_what_is_said.py, R10 is in test_types_and_variables.py.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from whole import DEVICE, built, document, extracted, rebuilt

from kerncap.cli.entry import run
from kerncap.core.capture import manifest
from kerncap.core.replay.replayer import Replayer
from support.build import build_program, compile_device
from support.package import APP

pytestmark = built


@pytest.fixture(scope="module")
def advance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extracted("in_place", "advance", tmp_path_factory.mktemp("replay"))


def test_where_every_process_has_the_same_addresses(tmp_path: Path) -> None:  # R1
    """Without randomisation libraries of the replayer lie where the program's memory was."""

    def fixed() -> None:
        ctypes.CDLL(None).personality(0x0040000)  # ADDR_NO_RANDOMIZE

    environment = {**os.environ, "KERNCAP_DEVICE": DEVICE, "PYTHONPATH": str(APP)}
    program = str(build_program("pointers").executable)
    for words in (
        ["extract", "run_entries", "-o", "out", "--", program],
        ["validate", "out", "--strict"],
        ["replay", "out"],
    ):
        command = [sys.executable, "-m", "kerncap", *words]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            preexec_fn=fixed,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["capture.bin", "memory.pre", "memory.post", "manifest.json", "code"])
@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_a_file_that_is_not_as_it_was(advance: Path, tmp_path: Path, name: str, damage: str) -> None:  # R2
    capture = Path(shutil.copytree(advance, tmp_path / "out")) / "capture"
    path = next((capture / name).iterdir()) if name == "code" else capture / name
    content = path.read_bytes()
    if damage == "flip":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    elif damage == "cut":
        path.write_bytes(content[:-40])
    else:
        path.unlink()
    for command in ("inspect", "replay", "validate", "watch"):
        error = document(command, "out", cwd=tmp_path, code=6)["error"]
        assert path.name in error or "capture.bin" in error
        assert "extract it again" in error


def test_a_newer_schema(advance: Path, tmp_path: Path) -> None:  # R2
    path = Path(shutil.copytree(advance, tmp_path / "out")) / "capture" / manifest.NAME
    newer = json.loads(path.read_text()) | {"schema": "kerncap-capture/2"}
    manifest.write(path.parent, newer)
    assert "newer than this kerncap reads" in document("validate", "out", cwd=tmp_path, code=6)["error"]


def test_a_variant_that_is_another_kernel_or_for_another_arch(advance: Path, tmp_path: Path) -> None:  # R3
    source = build_program("in_place").source / "in_place.hip"
    more = "__shared__ float big[16000]; big[threadIdx.x] = x[i]; if (n < 0) x[0] = big[n & 63];"
    changed = tmp_path / "local.hip"
    changed.write_text(source.read_text().replace("if (i < n)", f"{more} if (i < n)"))
    for code_object, words in (
        (build_program("untyped").code_object(), "has no kernel advance; it has fill"),
        (compile_device(source, tmp_path / "other.hsaco", "gfx90a"), "code for gfx90a"),
        (tmp_path / "none.hsaco", "there is no such file"),
        (source, "is no"),
    ):
        for command in ("validate", "replay"):
            error = document(command, str(advance), "--hsaco", str(code_object), cwd=tmp_path, code=2)[
                "error"
            ]
            assert words in error
    fits = compile_device(changed, tmp_path / "local.hsaco")  # within the LDS that there is
    assert document("validate", str(advance), "--hsaco", str(fits), cwd=tmp_path)["verdict"] == "IDENTICAL"


def test_float_atomics(tmp_path: Path) -> None:  # R6
    reproducer = extracted("float_atomics", "sum_atomic", tmp_path)
    own = document("validate", str(reproducer), cwd=tmp_path)
    assert own["verdict"] == "NONDETERMINISTIC_OK"
    assert own["masked_share"] == 1
    wrong = rebuilt(reproducer, "x[i])", "2 * x[i])")
    assert document("validate", str(reproducer), "--hsaco", wrong, cwd=tmp_path, code=1)["verdict"] == "FAIL"


def test_values_that_are_no_numbers(tmp_path: Path) -> None:  # R7
    reproducer = extracted("special_values", "special", tmp_path)

    def verdict(old: str, new: str, *options: str, code: int = 0) -> str:
        words = (str(reproducer), "--hsaco", rebuilt(reproducer, old, new), *options)
        return str(document("validate", *words, cwd=tmp_path, code=code)["verdict"])

    assert document("validate", str(reproducer), "--bitwise", cwd=tmp_path)["verdict"] == "IDENTICAL"
    assert verdict("-0.0f * x[i]", "0.0f * x[i]") == "WITHIN_TOLERANCE"
    assert verdict("-0.0f * x[i]", "0.0f * x[i]", "--bitwise", code=1) == "FAIL"
    assert verdict("0x7fc00000", "0x7fc00100") == "WITHIN_TOLERANCE"
    loose = ("--atol", "1e30", "--rtol", "1e30", "--ulp", "1000000")
    assert verdict("0x7f800000", "0x7fc00000", *loose, code=1) == "FAIL"  # a NaN where an infinity was
    assert verdict("0x7f800000", "0xff800000", *loose, code=1) == "FAIL"  # the other infinity
    assert verdict("__int_as_float(0x7fc00000 | (i & 0xff))", "1.0f", *loose, code=1) == "FAIL"
    assert verdict("out[i] = x[i];", "out[i] = x[i] + 1.0f;", *loose) == "WITHIN_TOLERANCE"


def test_timestamps_that_cannot_be(
    advance: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # R8
    """The simulated device gives none of that sort: every third is replaced on its way from the replayer."""
    real, bad = Replayer.run, [(0, 0), (500, 500), (900, 100)]
    taken = 0

    def run_with_bad_times(self: Replayer, *words: Any, **options: Any) -> Any:
        nonlocal taken
        times = real(self, *words, **options)
        taken += 1
        return np.array([bad[taken // 3 % 3]], np.int64) if taken % 3 == 0 else times

    monkeypatch.setenv("KERNCAP_DEVICE", DEVICE)
    assert run(["replay", str(advance), "--json", "--iterations", "12"]) == 0
    honest = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(Replayer, "run", run_with_bad_times)
    assert run(["replay", str(advance), "--json", "--iterations", "12"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rejected"] == 4
    assert set(found["samples_ns"]) == set(honest["samples_ns"])
    assert (found["median_ns"], found["mean_ns"]) == (honest["median_ns"], honest["mean_ns"])


def test_a_long_kernel_and_a_tiny_one(tmp_path: Path) -> None:  # R9
    command = ("--", str(build_program("durations").executable), "--launches", "2")
    report = document("profile", *command, cwd=tmp_path)
    seen = {kernel["name"]: kernel["mean_ns"] for kernel in report["kernels"]}
    assert seen["tiny"] < 10_000 < 1_000_000 < seen["work_for"]
    for name, mean in seen.items():
        document("extract", name, "-o", name, *command, cwd=tmp_path)
        timing = document("replay", name, "--iterations", "3", cwd=tmp_path)
        assert timing["median_ns"] == pytest.approx(mean, rel=0.2)
