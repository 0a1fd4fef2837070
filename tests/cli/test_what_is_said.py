"""What commands tell of what they did and did not do, on real programs, and how they end."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from whole import DEVICE, built, document, extracted, kerncap, rebuilt

from kerncap.core.loop.history import captured_sources, present_sources
from kerncap.core.replay.replay import simulated_clock
from support.build import build_program
from support.package import APP

pytestmark = built
EDITED = "if (i < n) x[i] ="
ENDLESS = 'while (n) asm volatile("s_nop 0"); if (i < n) x[i] ='


@pytest.fixture(scope="module")
def advance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extracted("in_place", "advance", tmp_path_factory.mktemp("said"))


@pytest.fixture
def edited(advance: Path, tmp_path: Path) -> Path:
    """A copy of the reproducer, whose source may be edited."""
    return Path(shutil.copytree(advance, tmp_path / "edited"))


def edit(reproducer: Path, old: str, new: str) -> None:
    source = reproducer / "kernel_variant.cpp"
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))


def test_extract_says_what_became_of_the_program(tmp_path: Path) -> None:
    program = str(build_program("in_place").executable)
    done = kerncap("extract", "advance", "-o", "a", "--", program, cwd=tmp_path)
    assert "in_place:" not in done.stdout  # the program's last line
    assert "program   ended by kerncap once the capture was on disk (--keep-running" in done.stdout
    done = kerncap("extract", "advance", "-o", "b", "--keep-running", "--", program, cwd=tmp_path)
    assert "in_place: 2 launches" in done.stdout
    assert "program   ran to its own end" in done.stdout
    words = ["extract", "advance", "--force", "-o"]
    assert document(*words, "a", "--", program, cwd=tmp_path)["program"] == "ended"
    assert document(*words, "b", "--keep-running", "--", program, cwd=tmp_path)["program"] == "exited"


def test_force_keeps_what_somebody_has_worked_on(tmp_path: Path) -> None:
    program = str(build_program("in_place").executable)
    words = [
        "extract",
        "advance",
        "-o",
        "a",
        "--force",
        "--source-dir",
        str(build_program("in_place").source),
    ]

    def again() -> list[str]:
        return list(document(*words, "--", program, cwd=tmp_path)["warnings"])

    assert again() == again() == []  # nothing was done in it: it is replaced
    assert (tmp_path / "a/vfs.yaml").is_file()
    without = ["extract", "advance", "-o", "a", "--force", "--language", "none"]
    assert document(*without, "--", program, cwd=tmp_path)["warnings"] == []  # a reproducer without one, too
    again()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    present = present_sources(tmp_path / "a")
    present.pop("compile.json")
    assert captured_sources(tmp_path / "a") == present  # a diff is of what was edited
    variant = tmp_path / "a/kernel_variant.cpp"
    variant.write_text(variant.read_text() + "// mine\n")
    [said] = again()
    assert "edited sources" in said
    assert "a.old" in said
    assert (tmp_path / "a.old/kernel_variant.cpp").read_text().endswith("// mine\n")
    assert not variant.read_text().endswith("// mine\n")
    (tmp_path / "a/notes.txt").write_text("mine")
    assert "notes.txt" in again()[0]
    assert (tmp_path / "a.old-2/notes.txt").read_text() == "mine"
    (tmp_path / "a/iterations/001").mkdir(parents=True)
    assert "attempts" in again()[0]
    assert (tmp_path / "a.old-3/iterations/001").is_dir()
    header = next((tmp_path / "a/deps/kerncap-hip").rglob("*.h"))  # nobody's to edit, and nobody's to lose
    header.write_text(header.read_text() + "// mine\n")
    assert "edited sources" in again()[0]


def test_a_source_directory_that_was_named_in_vain(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "more.hip").write_text("__global__ void more(int* p) { *p = 1; }\n")
    program = str(build_program("in_place").executable)
    done = kerncap("extract", "advance", "-o", "a", "--source-dir", "other", "--", program, cwd=tmp_path)
    assert "--source-dir other does not hold the source of this kernel" in done.stderr
    assert "--source-dir other does not hold" in (tmp_path / "a" / "README.md").read_text()
    words = ("advance", "-o", "b", "--source-dir")
    vain = document("extract", *words, "other", "--", program, cwd=tmp_path)["source"]
    assert (vain["variant"], vain["source_dirs"]) == (
        "kernel_variant.cpp",
        [{"directory": "other", "used": False}],
    )
    folder = str(build_program("in_place").source)
    used = document("extract", "--force", *words, folder, "--", program, cwd=tmp_path)["source"]
    assert (used["notes"], used["source_dirs"]) == ([], [{"directory": folder, "used": True}])


def test_arguments_have_the_names_of_the_source(advance: Path, tmp_path: Path) -> None:
    arguments = document("inspect", str(advance), cwd=tmp_path)["capture"]["arguments"]
    assert [(a["name"], a["type"]) for a in arguments] == [("x", "float*"), ("scale", "float"), ("n", "int")]
    rows = [line.split() for line in kerncap("inspect", str(advance), cwd=tmp_path).stdout.splitlines()[-3:]]
    assert [row[3] for row in rows] == ["x", "scale", "n"]
    code_object = str(build_program("in_place").code_object())
    (found,) = document("inspect", code_object, cwd=tmp_path)["code_objects"]
    assert [a["name"] for a in found["kernels"][0]["arguments"]] == ["x", "scale", "n"]


def test_kernels_of_a_code_object_have_their_names_in_the_source_and_registers_what_they_count(
    advance: Path, tmp_path: Path
) -> None:
    code_object = str(build_program("templates").code_object())
    (found,) = document("inspect", code_object, cwd=tmp_path)["code_objects"]
    names = {kernel["name"]: kernel["demangled"] for kernel in found["kernels"]}
    assert names["_Z5scaleIL4Kind39EiEvPT0_i"] == "void scale<(Kind)39, int>(int*, int)"
    assert names["twin"] == "twin"
    shown = kerncap("inspect", code_object, cwd=tmp_path).stdout
    assert "  void scale<(Kind)0, float>(float*, int)\n" in shown
    assert "_Z5scale" not in shown
    assert "vgprs used  sgprs used" in shown
    assert " SGPRs used\n" in kerncap("inspect", str(advance), cwd=tmp_path).stdout


def test_a_fail_is_told_in_words(advance: Path, tmp_path: Path) -> None:
    variant = rebuilt(advance, "+ 1.0f", "+ (i % 2 ? 1.0f : 2.0f)")
    shown = kerncap("validate", str(advance), "--hsaco", variant, cwd=tmp_path, code=1)
    assert "[0] at 0x" in shown.stdout
    assert ": 2.0, should be 1.0" in shown.stdout
    assert not set("{}") & set(shown.stdout + shown.stderr)


def test_the_variant_that_was_run_is_named_and_no_other_can_be_meant(edited: Path, tmp_path: Path) -> None:
    mine = Path(rebuilt(edited, "+ 1.0f", "+ 0.5f * 2.0f", "mine.hsaco"))
    words = (str(edited), "--hsaco", "mine.hsaco")
    for command in ("validate", "replay"):
        told = document(command, *words, cwd=tmp_path, code=0)
        assert (told["symbol"], told["variant"]) == ("advance", str(mine))
    shown = kerncap("validate", *words, cwd=tmp_path, code=0).stdout
    assert "  kernel    advance\n  variant   edited/mine.hsaco\n" in shown
    shown = kerncap("replay", *words, cwd=tmp_path).stdout
    assert "  variant edited/mine.hsaco (its result is not checked: kerncap validate)\n" in shown
    shown = kerncap("replay", str(edited), cwd=tmp_path).stdout
    assert "variant" not in shown
    here = tmp_path / "mine.hsaco"
    shutil.copy(mine, here)
    assert document("replay", *words, cwd=tmp_path)["variant"] == str(here)
    here.write_bytes(here.read_bytes() + b"\0")
    for command in ("validate", "replay"):
        error = document(command, *words, cwd=tmp_path, code=2)["error"]
        assert f"names two code objects, and they differ: {here} and {mine}" in error
    assert document("replay", str(edited), "--hsaco", str(mine), cwd=tmp_path)["variant"] == str(mine)


def test_a_name_is_ambiguous_only_where_both_files_are_code(advance: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("notes of my own\n")
    words = ("validate", str(advance), "--hsaco", "README.md")
    error = document(*words, cwd=tmp_path, code=2)["error"]
    assert "two code objects" not in error
    assert "README.md is no AMDGPU code object" in error


def test_a_device_of_another_arch_is_told_with_the_right_one(advance: Path, tmp_path: Path) -> None:
    other = {"KERNCAP_DEVICE": "sim:gfx90a"}
    said = kerncap("replay", str(advance), cwd=tmp_path, env=other, code=4).stderr
    assert "the capture is of gfx942, and sim:gfx90a (KERNCAP_DEVICE is sim:gfx90a) simulates another" in said
    assert "--device sim:gfx942 can run it" in said
    kerncap("replay", str(advance), "--device", "sim:gfx942", cwd=tmp_path, env=other)


def test_simulated_times_are_called_alike_only_where_they_are(advance: Path, tmp_path: Path) -> None:
    said = kerncap("replay", str(advance), "--iterations", "3", cwd=tmp_path).stderr
    assert "cycles of its cost table, the same in all of these runs; not GPU time" in said
    assert "not the same in all of these runs" in simulated_clock(np.array([7.0, 7.0, 8.0]))


def test_no_captures_yet(tmp_path: Path) -> None:
    said = kerncap("list", cwd=tmp_path, code=2).stderr
    assert "there are no captures in isolated, which does not exist: `kerncap extract` makes them" in said


def test_smoke_says_what_it_does_not_judge(advance: Path, tmp_path: Path) -> None:
    shown = kerncap("validate", str(advance), "--smoke", cwd=tmp_path).stdout
    assert shown.splitlines()[0] == "RAN: it ran to its end without a fault; nothing was compared"
    assert "whether it writes the right values" in shown
    assert "against" not in shown
    assert document("validate", str(advance), "--smoke", cwd=tmp_path)["against"] == "nothing"


def test_a_dispatch_has_the_limit_that_is_given(advance: Path, edited: Path, tmp_path: Path) -> None:  # R5
    variant = rebuilt(advance, EDITED, ENDLESS)
    limit = ("--timeout", "1.5")
    for command in (["validate"], ["validate", "--smoke"], ["replay"]):
        done = kerncap(*command, str(advance), "--hsaco", variant, *limit, cwd=tmp_path, code=1)
        assert "did not end within 1.5 s, its limit (--timeout)" in done.stdout + done.stderr
    edit(edited, EDITED, ENDLESS)
    done = kerncap("watch", "--once", str(edited), *limit, cwd=tmp_path, code=1)
    assert "did not end within 1.5 s, its limit (--timeout)" in done.stdout
    for command in ("validate", "replay", "watch"):
        kerncap(command, str(advance), "--timeout", "0", cwd=tmp_path, code=2)
    assert kerncap("validate", str(advance), cwd=tmp_path).stdout.startswith("IDENTICAL")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("float scale", "float  scale", 0),
        ("+ 1.0f", "+ 2.0f", 1),
        ("+ 1.0f", "+ 1.0f error", 2),
        ("float scale", "double scale", 2),
    ],
)
def test_watch_once_ends_as_its_attempt(edited: Path, old: str, new: str, code: int, tmp_path: Path) -> None:
    edit(edited, old, new)
    kerncap("watch", "--once", str(edited), cwd=tmp_path, code=code)


def test_watch_once_of_what_does_not_fit_or_proves_nothing(tmp_path: Path) -> None:
    reproducer = extracted("variables", "polynomial", tmp_path)
    edit(reproducer, "coefficients[4];", "coefficients[8];")
    done = kerncap("watch", "--once", str(reproducer), cwd=tmp_path, code=2)
    assert "coefficients has 32 bytes" in done.stdout
    edit(reproducer, "coefficients[8];", "coefficients[4];")
    edit(reproducer, "__device__ float history[256];", "")
    edit(reproducer, "if (i < 256) history[i] += r;", "")
    done = kerncap("watch", "--once", str(reproducer), cwd=tmp_path, code=3)
    assert "INCONCLUSIVE" in done.stdout
    assert "no module variable history" in done.stderr


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 130), (signal.SIGHUP, 130)]
)
def test_watch_ends_by_ctrl_c_as_it_should(edited: Path, number: signal.Signals, code: int) -> None:
    environment = {**os.environ, "KERNCAP_DEVICE": DEVICE, "PYTHONPATH": str(APP)}
    command = [sys.executable, "-m", "kerncap", "watch", str(edited)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as it:
        assert it.stdout is not None
        assert any(": passed, " in line for line in it.stdout)
        it.send_signal(number)
        _, errors = it.communicate(timeout=60)
    assert it.returncode == code, errors
    assert "stopped" in errors
    assert "Traceback" not in errors


def test_one_argument_more_is_said_in_words(edited: Path, tmp_path: Path) -> None:
    edit(edited, "int n) {", "int n, double extra) {")
    said = kerncap("watch", "--once", str(edited), cwd=tmp_path, code=2).stdout
    assert "one argument more: double extra at offset 16 (8 bytes)" in said
    assert not set("[]{}") & set(said)


def test_a_part_of_a_capture_is_no_code_object(advance: Path, tmp_path: Path) -> None:
    memory = advance / "capture" / "memory.pre"
    error = document("inspect", str(memory), cwd=tmp_path, code=2)["error"]
    assert f"is a part of a capture: kerncap inspect {memory.parent} shows it" in error
    shutil.copy(memory, tmp_path / "bytes")
    error = document("inspect", "bytes", cwd=tmp_path, code=2)["error"]
    first = " ".join(f"{byte:02x}" for byte in memory.read_bytes()[:8])
    assert f"it starts with the bytes {first}. " in error


def test_a_grid_that_was_never_launched(tmp_path: Path) -> None:
    program = str(build_program("in_place").executable)
    words = ("advance", "-o", "a", "--grid", "77", "--", program)
    error = document("extract", *words, cwd=tmp_path, code=5)["error"]
    assert "never with the grid 77x1x1 (work-items, --grid); its last dispatch had" in error
    assert not re.search(r"\(\d+, ", error)


def test_recompile_takes_a_limit(edited: Path) -> None:
    def run(*words: str) -> int:
        command = [sys.executable, "-m", "kerncap.cli.recompile", *words]
        environment = {**os.environ, "PYTHONPATH": str(APP)}
        return subprocess.run(command, env=environment, capture_output=True, timeout=120).returncode

    assert run("--timeout", "100", str(edited)) == 0
    assert run(str(edited), "--timeout") == 2
    assert run("--timeout", "soon", str(edited)) == 2
    assert run("--timeout", "0.001", str(edited)) != 0
    assert not (edited / "optimized.hsaco").exists()


def test_where_nothing_was_dispatched_nothing_is_said_of_times(tmp_path: Path) -> None:
    said = kerncap("profile", "--", "true", cwd=tmp_path).stdout
    assert "0 dispatches of 0 kernels" in said
    assert "simulated" not in said


def test_nothing_is_added_to_a_capture(advance: Path, tmp_path: Path) -> None:
    before = sorted(path.name for path in advance.rglob("*"))
    for place in (advance, advance / "capture"):
        error = kerncap("replay", str(advance), "--dump", str(place), cwd=tmp_path, code=2).stderr
        assert f"{place} holds a capture, and nothing is added to it" in error
    assert sorted(path.name for path in advance.rglob("*")) == before


def test_what_a_variable_names_and_is_not_there(
    edited: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = kerncap("replay", str(edited), cwd=tmp_path, code=4, env={"KERNCAP_DEVICE": "foo"}).stderr
    assert "device 'foo' (KERNCAP_DEVICE) is not known" in said
    said = kerncap(
        "profile", "--", "true", cwd=tmp_path, code=4, env={"KERNCAP_DEVICE": "sim:gfx942x999"}
    ).stderr
    assert "device 'sim:gfx942x999' (KERNCAP_DEVICE): 1 to" in said
    said = kerncap("doctor", cwd=tmp_path, env={"ROCM_PATH": "/nowhere"}).stdout
    if "ROCm" in said and "no ROCm" in said:
        assert "no ROCm in /nowhere (ROCM_PATH), nor in /opt/rocm" in said
    edit(edited, EDITED, EDITED + " 1.0f +")
    words = [sys.executable, "-m", "kerncap.cli.recompile", str(edited)]
    environment = {**os.environ, "PYTHONPATH": str(APP), "KERNCAP_CLANG": "/nowhere/clang"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (4, "")
    assert "KERNCAP_CLANG names /nowhere/clang, which is no program here" in done.stderr


def test_a_reproducer_that_lost_its_compile_command(edited: Path, tmp_path: Path) -> None:
    (edited / "compile.json").unlink()
    said = kerncap("watch", str(edited), "--once", cwd=tmp_path, code=2).stderr
    assert "has lost its compile.json, which says how kernel_variant.cpp is compiled: extract" in said


def test_a_variant_that_does_not_build_ends_recompile_as_watch(edited: Path, tmp_path: Path) -> None:
    edit(edited, EDITED, "nonsense " + EDITED)
    words = [sys.executable, "-m", "kerncap.cli.recompile", str(edited)]
    done = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": str(APP)}, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 2
    assert "unknown type name 'nonsense'" in done.stderr or "nonsense" in done.stderr
    kerncap("watch", str(edited), "--once", cwd=tmp_path, code=2)


def test_what_a_capture_takes_on_disk_is_the_same_everywhere(tmp_path: Path) -> None:
    program = str(build_program("in_place").executable)
    made = document("extract", "advance", "-o", "isolated/a", "--", program, cwd=tmp_path)
    (listed,) = document("list", cwd=tmp_path)["captures"]
    assert listed["bytes_on_disk"] == made["bytes_on_disk"]


def test_a_region_that_there_is_not(advance: Path, tmp_path: Path) -> None:
    said = kerncap("validate", str(advance), "--dtype", "99=f32", cwd=tmp_path, code=2).stderr
    assert re.search(r"there is no region 99 in the capture; it has 1(, \d+)*\n", said)


def test_a_store_outside_of_the_capture_has_no_value_that_it_should_have(
    advance: Path, tmp_path: Path
) -> None:
    variant = rebuilt(advance, EDITED, "x[n + 7] = 1.0f; " + EDITED, str(tmp_path / "beyond.hsaco"))
    said = kerncap("validate", str(advance), "--hsaco", variant, "--strict", cwd=tmp_path, code=1).stdout
    (row,) = (line for line in said.splitlines() if "a store outside of every captured region" in line)
    assert " outside " in row
    assert "should be" not in row
