"""The situations C1-C17 of tests/CASES.md from end to end: a program, the command lines, the exit codes."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from whole import DEVICE, built, document, extracted, kerncap, rebuilt

from support.package import APP

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "interpose"))

from watching import executable

pytestmark = built


def program(name: str) -> str:
    return str(executable(name))


def verdict(reproducer: Path, variant: str | None = None, *options: str, code: int = 0) -> str:
    hsaco = ("--hsaco", variant) if variant is not None else ()
    found = document("validate", str(reproducer), *hsaco, *options, cwd=reproducer.parent, code=code)
    return str(found["verdict"])


def test_a_buffer_that_is_updated_in_place(tmp_path: Path) -> None:  # C1
    reproducer = extracted("in_place", "advance", tmp_path, "--dispatch", "2")
    for _ in range(2):
        assert verdict(reproducer) == "IDENTICAL"
    timing = document("replay", str(reproducer), "--iterations", "20", cwd=tmp_path)
    assert timing["iterations"] == 20
    assert verdict(reproducer) == "IDENTICAL"


def test_an_emptied_kernel_where_the_right_values_are_there(tmp_path: Path) -> None:  # C2
    reproducer = extracted("untyped", "fill", tmp_path, "--dispatch", "2")
    assert document("inspect", str(reproducer), cwd=tmp_path)["capture"]["memory"]["changed_bytes"] == 0
    assert verdict(reproducer, rebuilt(reproducer, "if (i < n)", "if (n < 0)"), code=1) == "FAIL"
    assert verdict(reproducer, rebuilt(reproducer, "if (i < n)", "if (i < n - 1)"), code=1) == "FAIL"
    assert verdict(reproducer, rebuilt(reproducer, "if (i < n)", "if (n > i)")) == "IDENTICAL"


def test_packets_of_one_submission(tmp_path: Path) -> None:  # C3
    batches = ("--", program("batches"))
    report = document("profile", *batches, cwd=tmp_path, code=5)  # the program's own exit status is 7
    assert report["exit_code"] == 7
    assert {kernel["name"]: kernel["calls"] for kernel in report["kernels"]} == {"add_one": 6, "add_two": 6}
    made = document("extract", "add_two", "--dispatch", "3", "-o", "out", *batches, cwd=tmp_path)
    assert (made["kernel"], made["dispatch"], made["baseline"]["verdict"]) == ("add_two", 3, "IDENTICAL")


def test_an_old_capture_is_neither_kept_nor_returned(tmp_path: Path) -> None:  # C4
    words = ("advance", "-o", "out", "--", program("in_place"), "--launches")
    first = document("extract", *words, "2", cwd=tmp_path)
    before = document("inspect", "out", cwd=tmp_path)["capture"]
    assert "--force" in document("extract", *words, "3", cwd=tmp_path, code=2)["error"]
    assert document("inspect", "out", cwd=tmp_path)["capture"] == before
    again = document("extract", "--force", "--dispatch", "3", *words, "3", cwd=tmp_path)
    assert (first["dispatch"], again["dispatch"]) == (1, 3)
    assert document("inspect", "out", cwd=tmp_path)["capture"]["dispatch"]["nth"] == 3
    document("extract", "--force", "nothing", *words[1:], "2", cwd=tmp_path, code=5)
    assert document("inspect", "out", cwd=tmp_path)["capture"]["dispatch"]["nth"] == 3


def started(*words: str, cwd: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "KERNCAP_DEVICE": DEVICE, "PYTHONPATH": str(APP)}
    command = [sys.executable, "-m", "kerncap", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=cwd, env=environment, **pipes)  # type: ignore[call-overload,no-any-return]


def test_a_program_that_dies_in_the_middle_of_the_snapshot(tmp_path: Path) -> None:  # C5
    steady = ("--", program("steady"), "--big", "300")
    with started("extract", "add_one", "-o", "out", *steady, cwd=tmp_path) as process:
        limit = time.monotonic() + 60
        while not any(path.stat().st_size for path in tmp_path.glob(".partial-*/*/memory.pre")):
            assert time.monotonic() < limit
            assert process.poll() is None
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 5, errors
    assert "in the middle of the capture of add_one" in errors
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up(tmp_path: Path) -> None:  # C5
    """The limit on the size of a file stands for a full disk: the write fails in the same place."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000_000, resource.RLIM_INFINITY))

    steady = ("--", program("steady"), "--big", "128")
    words = [sys.executable, "-m", "kerncap", "extract", "add_one", "-o", "out", *steady]
    environment = {**os.environ, "KERNCAP_DEVICE": DEVICE, "PYTHONPATH": str(APP)}
    pipes = {"capture_output": True, "text": True, "timeout": 120, "preexec_fn": limit}
    done = subprocess.run(words, cwd=tmp_path, env=environment, **pipes)  # type: ignore[call-overload]
    assert done.returncode == 5
    assert "memory.pre: File too large (the limit on the size of files, ulimit -f)" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_that_is_never_launched(tmp_path: Path) -> None:  # C6
    words = ("-o", "out", "--", program("in_place"))
    error = document("extract", "advanse", *words, cwd=tmp_path, code=5)
    assert error["launched"][0]["name"] == "advance"
    assert any("amdhip" in name for name in error["runtimes"])
    assert list(tmp_path.iterdir()) == []


def test_names_that_share_a_part(tmp_path: Path) -> None:  # C7
    templates = ("--", program("templates"))
    report = document("profile", *templates, cwd=tmp_path)
    ids = {kernel["symbol"]: kernel["id"] for kernel in report["kernels"]}
    error = document("extract", "scale", "-o", "out", *templates, cwd=tmp_path, code=2)
    assert len(error["candidates"]) == 3
    for name in ("_Z5scaleIL4Kind39EiEvPT0_i", "scale_all", ids["_Z5scaleIL4Kind0EfEvPT0_i"]):
        made = document("extract", name, *templates, cwd=tmp_path)
        assert made["symbol"] == next((s for s, i in ids.items() if name in (s, i)))
        done = subprocess.run(
            ["make", "-C", str(tmp_path / made["output"]), "recompile", "validate"],
            env={**os.environ, "PYTHONPATH": str(APP), "KERNCAP_DEVICE": DEVICE},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    twins = [kernel["id"] for kernel in report["kernels"] if kernel["symbol"] == "twin"]
    assert len(set(twins)) == 2
    for ident in twins:
        assert document("extract", ident, "-o", ident, *templates, cwd=tmp_path)["id"] == ident


def test_a_code_object_that_is_loaded_hundreds_of_times(tmp_path: Path) -> None:  # C8
    reproducer = extracted("many_modules", "count", tmp_path)
    copies = list((reproducer / "capture" / "code").iterdir())
    assert [path.suffix for path in copies] == [".hsaco"]
    assert verdict(reproducer) == "IDENTICAL"


def test_pointers_in_what_is_passed_by_value(tmp_path: Path) -> None:  # C9
    reproducer = extracted("by_value", "run_task", tmp_path)
    capture = document("inspect", str(reproducer), cwd=tmp_path)["capture"]
    assert [argument["kind"] for argument in capture["arguments"]] == ["by_value"]
    shown = kerncap("inspect", str(reproducer), cwd=tmp_path).stdout
    assert re.search(r"by_value +task +\{in 0x[0-9a-f]+, out 0x[0-9a-f]+, n \d+\}$", shown, re.M), shown
    assert capture["memory"]["changed_bytes"] > 0
    close = rebuilt(reproducer, "* 3.0f", "* 3.000001f")
    assert verdict(reproducer, close, code=1) == "FAIL"
    assert verdict(reproducer, close, "--rtol", "1e-5") == "WITHIN_TOLERANCE"


def test_module_variables(tmp_path: Path) -> None:  # C10
    reproducer = extracted("variables", "polynomial", tmp_path, "--dispatch", "3")
    assert verdict(reproducer) == "IDENTICAL"
    same = rebuilt(reproducer, "if (i >= n) return;", "if (n <= i) return; __builtin_amdgcn_s_sleep(1);")
    assert verdict(reproducer, same) == "IDENTICAL"
    own = document("validate", str(reproducer), "--strict", cwd=tmp_path)
    other = document("validate", str(reproducer), "--strict", "--hsaco", same, cwd=tmp_path)
    assert (own["module_bytes"], other["skipped_bytes"]) == (0, 0)
    assert other["module_bytes"] > 0  # what a variant has of its own is counted: nothing is left out unsaid
    assert other["compared_bytes"] + other["module_bytes"] == own["compared_bytes"]
    shown = kerncap("validate", str(reproducer), "--strict", "--hsaco", same, cwd=tmp_path).stdout
    assert " of the captured code object's own data: the variant has its own" in shown


def test_a_list_of_nodes_in_allocations_of_their_own(tmp_path: Path) -> None:  # C11
    reproducer = extracted("pointers", "walk_list", tmp_path)
    capture = document("inspect", str(reproducer), cwd=tmp_path)["capture"]
    assert capture["memory"]["regions"] >= 20
    assert verdict(reproducer, None, "--strict") == "IDENTICAL"
    wrong = rebuilt(reproducer, "node->value += 1", "node->value += node->value == 7 ? 2 : 1")
    assert verdict(reproducer, wrong, code=1) == "FAIL"


def test_memory_of_every_kind(tmp_path: Path) -> None:  # C12
    reproducer = extracted("memory_kinds", "touch", tmp_path)
    regions = document("inspect", str(reproducer), cwd=tmp_path)["capture"]["regions"]
    assert {"device", "host", "registered", "managed"} <= {region["kind"] for region in regions}
    assert all(region["saved"] for region in regions)
    assert verdict(reproducer, None, "--strict") == "IDENTICAL"


def test_a_queue_that_is_busy(tmp_path: Path) -> None:  # C13
    words = ("target", "--dispatch", "5", "-o", "out", "--", program("streams"))
    assert document("extract", *words, cwd=tmp_path)["baseline"]["verdict"] == "IDENTICAL"


def test_a_queue_that_never_comes_to_rest(tmp_path: Path) -> None:  # C13
    words = ("add_one", "--timeout", "2", "-o", "out", "--", program("peers"), "--never")
    assert "2 s" in document("extract", *words, cwd=tmp_path, code=5)["error"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", ["fork", "spawn"])
def test_processes_of_a_program(mode: str, tmp_path: Path) -> None:  # C14
    words = ("--", program("processes"), "--mode", mode)
    report = document("profile", *words, cwd=tmp_path)
    assert sorted(process["dispatches"] for process in report["processes"]) == [5, 6, 7]
    assert [kernel["calls"] for kernel in report["kernels"]] == [18]
    made = document("extract", "count_up", "--dispatch", "7", "-o", "out", *words, cwd=tmp_path)
    assert (made["dispatch"], made["baseline"]["verdict"]) == (7, "IDENTICAL")


def test_a_fork_after_the_gpu_was_used(tmp_path: Path) -> None:  # C14
    report = document("profile", "--", program("processes"), "--mode", "fork-after", cwd=tmp_path)
    assert report["exit_code"] == 0
    assert report["dispatches"] == 5


def test_a_kernel_that_calls_its_host(tmp_path: Path) -> None:  # C16
    made = document("extract", "call_back", "-o", "out", "--", program("listener"), cwd=tmp_path, code=3)
    assert any("listener" in warning for warning in made["warnings"])
    assert "needs_listener" in document("inspect", "out", cwd=tmp_path)["capture"]["dispatch"]["flags"]
    for command in ("replay", "validate"):
        assert "hostcall" in document(command, "out", cwd=tmp_path, code=3)["error"]


def test_a_kernel_that_could_call_its_host_and_did_not(tmp_path: Path) -> None:  # C16
    """As what is compiled with -O0 can."""
    made = document("extract", "call_back", "-o", "out", "--", program("listener"), "--idle", cwd=tmp_path)
    assert made["baseline"]["verdict"] == "IDENTICAL"
    assert document("inspect", "out", cwd=tmp_path)["capture"]["dispatch"]["flags"] == []


def test_a_hundred_thousand_dispatches(tmp_path: Path) -> None:  # C17
    report = document("profile", "--", program("launches"), cwd=tmp_path)
    assert {kernel["name"]: kernel["calls"] for kernel in report["kernels"]} == {
        "tick": 90_000,
        "tock": 10_000,
    }
    assert (report["dispatches"], report["lost"]) == (100_000, 0)
    assert "launches: 100000" in kerncap("profile", "--", program("launches"), cwd=tmp_path).stdout
