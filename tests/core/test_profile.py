"""Profiles of programs that play the interposer: what is counted, merged, ended and said."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kerncap.cli.profile_command import show
from kerncap.core.device.runtimes import linked_runtimes
from kerncap.core.errors import DeviceError, UsageError
from kerncap.core.program.control import process_start
from kerncap.core.program.profile import profile

Fake = Callable[..., list[str]]


def test_calls_times_and_shares(fake: Fake) -> None:
    report = profile(
        fake(kernels=[{"name": "small", "calls": 30, "ns": 100}, {"name": "big", "calls": 3, "ns": 3000}])
    )
    assert report.exit_code == 0
    assert (report.dispatches, report.timed, report.lost) == (33, 33, 0)
    assert [(k.name, k.calls, k.total_ns, k.min_ns, k.max_ns) for k in report.kernels] == [
        ("big", 3, 9000, 3000, 3000),
        ("small", 30, 3000, 100, 100),
    ]
    assert [round(k.percent, 6) for k in report.kernels] == [75.0, 25.0]
    assert report.clock == "simulated"
    assert report.warnings == []


def test_children_are_counted_each_under_its_own_pid_and_merged_by_kernel(fake: Fake) -> None:
    child = {"kernels": [{"name": "k", "calls": 5, "ns": 10}]}
    report = profile(fake(kernels=[{"name": "k", "calls": 2, "ns": 50}], children=[child, child]))
    assert len({process.pid for process in report.processes}) == 3
    assert [(k.name, k.calls, k.total_ns, k.min_ns, k.max_ns) for k in report.kernels] == [
        ("k", 12, 200, 10, 50)
    ]


def test_same_name_in_two_code_objects_stays_two_kernels(
    fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels = [{"name": "k", "code": "a", "calls": 1}, {"name": "k", "code": "b", "calls": 2}]
    report = profile(fake(kernels=[*kernels, {"name": "other", "code": "c", "calls": 9}]))
    assert sorted(k.calls for k in report.kernels) == [1, 2, 9]
    codes = {k.code_hash for k in report.kernels}
    assert len(codes) == 3
    show(report, 5)
    lines = capsys.readouterr().out.splitlines()
    for kernel in report.kernels:
        (line,) = (line for line in lines if kernel.short_id in line)
        if kernel.name == "k":  # told apart by the beginning of its code object's hash
            assert line.endswith(f"  k  (code {kernel.code_hash[:6]})")
        else:
            assert line.endswith("  other")


def test_lost_and_rejected_are_said(fake: Fake) -> None:
    report = profile(fake(kernels=[{"name": "k"}], lost=2, rejected=3))
    assert report.lost == 2
    assert any("2 dispatches were never seen to end" in w for w in report.warnings)
    assert any("3 dispatches had no believable timestamps" in w for w in report.warnings)


def test_of_one_the_singular_is_said(fake: Fake) -> None:
    warnings = profile(fake(kernels=[{"name": "k"}], lost=1, rejected=1)).warnings
    assert any("1 dispatch was never seen to end" in w for w in warnings)
    assert any("1 dispatch had no believable timestamps" in w for w in warnings)


def test_what_was_not_timed_has_no_time(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    kernels = [{"name": "counted", "calls": 3, "ns": 0}, {"name": "once", "calls": 1, "ns": 0}]
    report = profile(fake(kernels=kernels, kill=9))
    assert any("the times of its last 4 dispatches were not read" in w for w in report.warnings)
    show(report, 5)
    shown = capsys.readouterr().out
    assert "4 dispatches of 2 kernels, 0 timed" in shown
    assert "Nothing was timed: % is of calls." in shown
    assert re.search(r"75\.00 +3 +- +- +- +- +", shown)
    assert report.percent_of == "calls"
    document = report.to_json()
    assert document["percent_of"] == "calls"
    assert {document["kernels"][0][f"{key}_ns"] for key in ("total", "mean", "min", "max")} == {None}
    report = profile(fake(kernels=[{"name": "timed", "calls": 1}, {"name": "late", "ns": 0}], kill=9))
    assert any("the time of its last dispatch was not read, it is counted" in w for w in report.warnings)
    show(report, 5)
    shown = capsys.readouterr().out
    assert "of calls" not in shown
    assert re.search(r" - +1 +- +- +- +- +", shown)
    assert report.to_json()["percent_of"] == "time"


def test_failing_program_is_reported_with_its_status(fake: Fake) -> None:
    report = profile(fake(kernels=[{"name": "k"}], exit=7))
    assert (report.exit_code, report.signal, report.dispatches) == (7, None, 1)


def test_program_ended_by_a_signal(fake: Fake) -> None:
    report = profile(fake(kernels=[{"name": "k"}], kill=11))
    assert (report.exit_code, report.signal) == (139, "SIGSEGV")


def test_timeout_ends_the_program_and_its_children(fake: Fake, tmp_path: Path) -> None:
    start = time.monotonic()
    report = profile(fake(kernels=[{"name": "k"}], children=[{"hang": 60}], hang=60), timeout=2.0)
    assert time.monotonic() - start < 20
    assert report.timed_out
    assert report.dispatches == 1
    assert len(report.processes) == 2
    assert not any(process_start(process.pid) for process in report.processes)


def test_program_without_gpu_names_the_reason(fake_natives: Path) -> None:
    report = profile([sys.executable, "-c", "import time; time.sleep(0.3)"])
    assert report.dispatches == 0
    (told,) = (w for w in report.warnings if "dispatch was seen" in w)
    assert told.endswith("No GPU runtime (libamdhip64, libhsa-runtime64, libcuda) was seen in it.")


def test_program_that_ends_before_it_can_be_looked_at(fake_natives: Path, tmp_path: Path) -> None:
    report = profile(["true"])
    assert any("was seen in it, which ended before there was much to see" in w for w in report.warnings)
    (tmp_path / "nothing.c").write_text("int main(void) { return 0; }")
    runtime = str(fake_natives / "sim" / "libhsa-runtime64.so.1")
    words = ["cc", "nothing.c", "-o", "nothing", "-Wl,--no-as-needed", runtime]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=60)
    report = profile(["./nothing"])
    told = next(w for w in report.warnings if w.startswith("no dispatch was seen. "))
    # Either it was seen with the runtime in it, or its file says that it has that.
    assert "libhsa-runtime64.so.1" in told
    assert "dispatched no kernel" in told
    assert linked_runtimes("./nothing") == ["libhsa-runtime64.so.1"]
    assert linked_runtimes("true") == linked_runtimes("nowhere") == linked_runtimes(sys.executable) == []


def test_program_that_loads_a_runtime_and_dispatches_nothing(fake_natives: Path) -> None:
    runtime = fake_natives / "sim" / "libhsa-runtime64.so.1"
    program = f"import ctypes, time; ctypes.CDLL({str(runtime)!r}); time.sleep(0.5)"
    report = profile([sys.executable, "-c", program])
    assert report.runtimes == ["libhsa-runtime64.so.1"]
    assert any("libhsa-runtime64.so.1" in w and "dispatched no kernel" in w for w in report.warnings)


def test_report_is_written_whole(fake: Fake, tmp_path: Path) -> None:
    profile(fake(kernels=[{"name": "k"}]), output=tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["kernels"][0]["calls"] == 1
    assert os.listdir(tmp_path / "runtime") == []


def test_output_that_cannot_be_written_is_refused_before_the_program_runs(fake: Fake, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    with pytest.raises(UsageError, match="does not exist"):
        profile([sys.executable, "-c", f"open({str(marker)!r}, 'w')"], output=tmp_path / "no" / "report.json")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (["no-such-program-anywhere"], "not in PATH"),
        (["./missing"], "does not exist"),
        (["./plain.txt"], "may not be executed"),
        (["./junk"], "neither a program for this machine nor a script"),
        (["."], "not in PATH"),
    ],
)
def test_program_that_cannot_be_started(fake: Fake, tmp_path: Path, program: list[str], words: str) -> None:
    (tmp_path / "plain.txt").write_text("x")
    (tmp_path / "junk").write_bytes(b"\0\1\2\3")
    (tmp_path / "junk").chmod(0o755)
    with pytest.raises(UsageError, match=words):
        profile(program)


def test_users_preload_and_library_path_stay(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, fake_natives: Path
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/mine")
    monkeypatch.setenv("LD_PRELOAD", "")
    seen = "import os, sys; sys.exit(0 if os.environ['LD_LIBRARY_PATH'].split(':')[-1] == '/mine' and "
    seen += f"os.environ['LD_PRELOAD'] == {str(fake_natives / 'libkerncap_hsa.so')!r} else 1)"
    assert profile([sys.executable, "-c", seen]).exit_code == 0


def test_unknown_device_lists_the_known(fake: Fake) -> None:
    with pytest.raises(DeviceError, match=r"(?s)sim:gfx999.*sim:gfx942"):
        profile(["true"], device="sim:gfx999")
    with pytest.raises(DeviceError, match="cannot be simulated yet"):
        profile(["true"], device="sim:gfx1100")


def test_native_directory_with_a_space(
    fake: Fake, fake_natives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "with space").symlink_to(fake_natives)
    monkeypatch.setenv("KERNCAP_NATIVE_DIR", str(tmp_path / "with space"))
    program = "import os, sys; sys.exit(0 if os.path.exists(os.environ['LD_PRELOAD']) and "
    program += "' ' not in os.environ['LD_PRELOAD'] else 1)"
    assert profile([sys.executable, "-c", program]).exit_code == 0
