"""Extraction's own logic with a program that plays the interposer: what is kept, refused, replaced and left
behind.

Source and baseline, which need a real code object, are replaced; tests of the whole loop have them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kerncap.core.capture import manifest
from kerncap.core.errors import DamagedCaptureError, UsageError, WorkloadError
from kerncap.core.extract import extract as extract_module
from kerncap.core.extract.extract import extract
from kerncap.core.extract.reproducer_info import ReproducerInfo
from kerncap.core.loop.captures import list_captures, open_capture
from kerncap.core.program.control import process_start

Fake = Callable[..., list[str]]

DRIVER = """
import sys
from kerncap.core.extract import extract
from kerncap.core.extract.reproducer_info import ReproducerInfo
extract._write_reproducer = lambda *a: ReproducerInfo("unknown", None, reason="none")
extract._baseline = lambda *a: {"verdict": "IDENTICAL"}
from kerncap.cli import main
main()
"""


@pytest.fixture(autouse=True)
def _no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        extract_module, "_write_reproducer", lambda *a: ReproducerInfo("unknown", None, reason="none")
    )
    monkeypatch.setattr(extract_module, "_baseline", lambda *a: {"verdict": "IDENTICAL"})


def left(where: Path) -> list[str]:
    """Everything below `where` that an extraction may have made."""
    return sorted(str(p.relative_to(where)) for p in where.rglob("*") if p.name != "runtime")


def test_captures_the_first_dispatch(fake: Fake, tmp_path: Path) -> None:
    result = extract("scale", fake(kernels=[{"name": "add", "calls": 2}, {"name": "scale", "calls": 3}]))
    assert (result.kernel, result.dispatch, result.arch, result.regions) == ("scale", 1, "gfx942", 1)
    assert result.output == "isolated/scale"
    opened = open_capture(tmp_path / "isolated" / "scale", verify=True)
    assert opened.manifest["schema"] == "kerncap-capture/1"
    assert opened.manifest["memory"]["changed_bytes"] == 4096
    assert os.stat("isolated/scale").st_mode & 0o777 == 0o700
    assert [one.kernel for one in list_captures()] == ["scale"]
    assert left(tmp_path / "runtime") == []


def test_nth_dispatch_is_not_reached(fake: Fake, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="launched 3 times; dispatch 9"):
        extract("k", fake(kernels=[{"name": "k", "calls": 3}]), dispatch=9)
    assert left(tmp_path) == []


def test_never_launched_lists_the_nearest_first(fake: Fake, tmp_path: Path) -> None:
    kernels = [{"name": "softmax"}, {"name": "mul_mat_vec_q"}, {"name": "add"}]
    with pytest.raises(WorkloadError) as caught:
        extract("mul_mat_vek", fake(kernels=kernels))
    lines = caught.value.message.splitlines()
    assert "never launched" in lines[0]
    assert "mul_mat_vec_q" in lines[1]
    assert next(k["name"] for k in caught.value.details["launched"]) == "mul_mat_vec_q"  # type: ignore[index]
    assert left(tmp_path) == []


def test_program_without_gpu(fake_natives: Path, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"No dispatch was seen\. No GPU runtime"):
        extract("k", [sys.executable, "-c", "import time; time.sleep(0.2)"])
    assert left(tmp_path) == []


def test_part_of_a_name_that_fits_one_launched_kernel_runs_again(fake: Fake) -> None:
    result = extract("mat_vec", fake(kernels=[{"name": "mul_mat_vec_q"}], loaded=["mul_mat_vec_f"]))
    assert result.kernel == "mul_mat_vec_q"
    assert any("run again" in warning for warning in result.warnings)


def test_part_of_a_name_that_fits_several_lists_them(fake: Fake, tmp_path: Path) -> None:
    kernels = [{"name": "mul_mat_vec_q", "calls": 5}, {"name": "mul_mat_vec_f"}, {"name": "add"}]
    with pytest.raises(UsageError) as caught:
        extract("mat_vec", fake(kernels=kernels))
    assert caught.value.exit_code == 2
    candidates = caught.value.details["candidates"]
    assert {k["name"]: k["calls"] for k in candidates} == {"mul_mat_vec_q": 5, "mul_mat_vec_f": 1}  # type: ignore[attr-defined]
    result = extract(str(candidates[0]["id"]), fake(kernels=kernels))  # type: ignore[index]
    assert result.kernel == candidates[0]["name"]  # type: ignore[index]


def test_existing_output_is_refused_and_force_replaces_only_with_a_complete_one(
    fake: Fake, tmp_path: Path
) -> None:
    program = fake(kernels=[{"name": "k"}])
    extract("k", program)
    marker = tmp_path / "isolated" / "k" / "mine"
    marker.write_text("x")
    with pytest.raises(UsageError, match="--force"):
        extract("k", program)
    with pytest.raises(WorkloadError):
        extract("k", fake(kernels=[{"name": "k"}], fail="no space left on device"), force=True)
    assert marker.exists(), "a failed extraction must not take the old one"
    extract("k", program, force=True)
    assert not marker.exists()
    assert (tmp_path / "isolated/k.old/mine").read_text() == "x"
    assert sorted(os.listdir(tmp_path / "isolated")) == ["k", "k.old"]


def test_force_does_not_replace_what_is_no_capture(fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis").write_text("x")
    with pytest.raises(UsageError, match="holds no capture"):
        extract("k", fake(kernels=[{"name": "k"}]), output="home", force=True)
    assert (tmp_path / "home" / "thesis").exists()


def test_a_kernel_that_ends_its_program_is_told_and_what_to_capture(fake: Fake, tmp_path: Path) -> None:
    program = fake(kernels=[{"name": "k", "calls": 3}], die="RUNNING")
    with pytest.raises(WorkloadError, match=r"the kernel itself ended it.* one that ends can be captured"):
        extract("k", program)
    with pytest.raises(WorkloadError, match=r"Nothing is kept.*--dispatch 1 captures the one before it"):
        extract("k", program, dispatch=2)
    assert left(tmp_path) == []


@pytest.mark.parametrize("state", ["DRAINING", "SAVING"])
def test_program_that_dies_in_the_capture_leaves_nothing(fake: Fake, tmp_path: Path, state: str) -> None:
    with pytest.raises(WorkloadError, match="in the middle of the capture"):
        extract("k", fake(kernels=[{"name": "k"}], die=state))
    assert left(tmp_path) == []


def test_child_that_dies_in_the_capture_while_the_parent_lives(fake: Fake, tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(WorkloadError, match="in the middle of the capture"):
        extract("k", fake(children=[{"kernels": [{"name": "k"}], "die": "SAVING"}], hang=60))
    assert time.monotonic() - start < 20
    assert left(tmp_path) == []


def test_failure_of_the_capture_is_said(fake: Fake, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="no space left on device"):
        extract("k", fake(kernels=[{"name": "k"}], fail="no space left on device"))
    assert left(tmp_path) == []


def test_program_that_fails_before_the_kernel(fake: Fake, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="ended by SIGSEGV"):
        extract("k", fake(kernels=[{"name": "other"}], kill=11))
    assert left(tmp_path) == []


def test_captured_child_ends_the_parent_too(fake: Fake) -> None:
    start = time.monotonic()
    result = extract("k", fake(children=[{"kernels": [{"name": "k"}]}], hang=60))
    assert result.kernel == "k"
    assert time.monotonic() - start < 30


def test_keep_running_lets_the_program_end_by_itself(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    extract("k", fake(kernels=[{"name": "k"}], print="the end"), keep_running=True)
    assert "the end" in capfd.readouterr().out


def test_timeout(fake: Fake, tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(WorkloadError, match=r"within 1\.5 s"):
        extract("k", fake(kernels=[{"name": "other"}], hang=60), timeout=1.5)
    assert time.monotonic() - start < 20
    assert left(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupt_in_the_middle_of_a_capture(fake: Fake, tmp_path: Path, number: int) -> None:
    program = fake(kernels=[{"name": "k"}], wait=60)
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, "extract", "k", "--", *program], stderr=subprocess.PIPE, text=True
    )
    limit = time.monotonic() + 30
    while not list(tmp_path.glob("runtime/*/*.live")) and time.monotonic() < limit:
        time.sleep(0.05)
    pid = int(next(tmp_path.glob("runtime/*/*.live")).name.split("-")[0])
    time.sleep(0.3)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert process_start(pid) is None
    assert left(tmp_path) == []


def test_partial_directory_of_a_killed_kerncap_is_swept_and_is_no_capture(fake: Fake, tmp_path: Path) -> None:
    program = fake(kernels=[{"name": "k"}], wait=60)
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, "extract", "k", "--", *program], start_new_session=True
    )
    limit = time.monotonic() + 30
    while not list(tmp_path.glob("runtime/*/*.live")) and time.monotonic() < limit:
        time.sleep(0.05)
    pid = int(next(tmp_path.glob("runtime/*/*.live")).name.split("-")[0])
    time.sleep(0.3)
    process.kill()
    process.wait()
    os.kill(pid, signal.SIGKILL)
    assert list((tmp_path / "isolated").glob(".partial-*"))
    assert list_captures() == []
    extract("k", fake(kernels=[{"name": "k"}]))
    assert os.listdir(tmp_path / "isolated") == ["k"]
    assert left(tmp_path / "runtime") == []


def test_unfinished_newer_and_altered_captures_are_refused(fake: Fake, tmp_path: Path) -> None:
    extract("k", fake(kernels=[{"name": "k"}]))
    where = tmp_path / "isolated" / "k"
    path = where / "capture" / manifest.NAME
    good = json.loads(path.read_text())
    for change, words in (
        ({"state": "partial"}, "never completed"),
        ({"schema": "kerncap-capture/2"}, "newer"),
        ({"schema": "else/1"}, "none of kerncap's"),
    ):
        path.write_text(json.dumps({**good, **change}))
        with pytest.raises(DamagedCaptureError, match=words):
            open_capture(where)
    path.write_text(json.dumps(good)[:-10])
    with pytest.raises(DamagedCaptureError, match="not JSON at offset"):
        open_capture(where)
    path.write_text(json.dumps(good))
    memory = where / "capture" / "memory.pre"
    data = bytearray(memory.read_bytes())
    data[100] ^= 1
    memory.write_bytes(data)
    with pytest.raises(DamagedCaptureError, match=r"memory\.pre"):
        open_capture(where, verify=True)


def test_name_that_needs_care_in_a_path(fake: Fake, tmp_path: Path) -> None:
    name = "void mul<(type)39>(int*, char const*)"
    result = extract(name, fake(kernels=[{"name": name, "symbol": "_Z3mulIL4type39EEvPiPKc"}]))
    assert result.output == "isolated/mul"
    result = extract("../../etc/k $(touch x)", fake(kernels=[{"name": "../../etc/k $(touch x)"}]))
    assert Path(result.output).resolve().parent == tmp_path / "isolated"


def test_bad_requests(fake: Fake, tmp_path: Path) -> None:
    program = fake(kernels=[{"name": "k"}])
    for keywords, words in (
        ({"dispatch": 0}, "counted from 1"),
        ({"defines": ["1x"]}, "NAME=VALUE"),
        ({"source_dir": "nowhere"}, "source directory"),
        ({"language": "basic"}, "language"),
        ({"language": "triton"}, "auto, hip, cuda, none"),
        ({"memory": "some"}, "memory"),
        ({"timeout": 0}, "timeout"),
        ({"cmd": "x | y"}, "given twice"),
    ):
        with pytest.raises(UsageError, match=words):
            extract("k", program, **keywords)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not run by a shell"):
        extract("k", cmd="x | y")
    assert left(tmp_path) == []


def test_capture_in_a_program_that_runs_already(fake: Fake, tmp_path: Path) -> None:
    from kerncap.core.extract.extract_running import extract_running
    from kerncap.core.program.control import Session

    Session.create(directory=tmp_path / "s").close()
    program = fake(kernels=[{"name": "k", "calls": 100_000}, {"name": "other"}], print="ran on", pause=0.001)
    environment = {**os.environ, "KERNCAP_SESSION": str(tmp_path / "s")}
    process = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        result = extract_running("k", tmp_path / "s", timeout=30)
        assert result.dispatch == 1
        assert open_capture(tmp_path / "isolated" / "k", verify=True)
        assert process.poll() is None, "the program must run on"
        with pytest.raises(WorkloadError, match=r"within 0\.5 s"):
            extract_running("nothing", tmp_path / "s", timeout=0.5)
        assert extract_running("k", tmp_path / "s", timeout=30, output="again").kernel == "k"
    finally:
        process.kill()
        process.wait()
    with pytest.raises(WorkloadError, match="every program of the session has ended"):
        extract_running("k", tmp_path / "s", timeout=30, output="third")
    assert not (tmp_path / "third").exists()
