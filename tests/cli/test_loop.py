"""The whole loop by its command lines, on the demonstration program and the simulated GPU."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kerncap.core.native import REPLAYER, SIM_HIP, SIM_RUNTIME, find_native
from kerncap.demo import BuiltDemo, build
from kerncap.demo.edits import HOIST, WRONG
from support.package import APP

DEVICE = "sim:gfx942"

pytestmark = pytest.mark.skipif(
    any(find_native(name) is None for name in (REPLAYER, SIM_RUNTIME, SIM_HIP)),
    reason="the native part is not built (KERNCAP_NATIVE_DIR, or pip install .)",
)


def kerncap(*arguments: str, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "kerncap", *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        cwd=cwd,
        env={**os.environ, "KERNCAP_DEVICE": DEVICE, "PYTHONPATH": str(APP)},
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == code, done.stdout + done.stderr
    return done


def document(*arguments: str, cwd: Path, code: int = 0) -> dict:
    command, *rest = arguments
    return json.loads(kerncap(command, "--json", *rest, cwd=cwd, code=code).stdout)


@dataclass
class Loop:
    where: Path
    demo: BuiltDemo
    extracted: dict

    @property
    def directory(self) -> Path:
        return self.where / "isolated" / "mul_mat_vec_q"


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Loop:
    """The demonstration program, built, with mul_mat_vec_q extracted by the command line of the paper."""
    where = tmp_path_factory.mktemp("loop")
    demo = build(where / "decoder", device=DEVICE, tokens=2)
    command = " ".join(demo.command)
    extracted = document(
        "extract", "mul_mat_vec_q", "--cmd", command, "--source-dir", str(demo.source_dir), cwd=where
    )
    return Loop(where, demo, extracted)


def plain_run(loop: Loop) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, **loop.demo.env}
    return subprocess.run(loop.demo.command, capture_output=True, timeout=200, env=environment)


def test_profile_counts_every_dispatch_and_does_not_disturb_the_program(loop: Loop) -> None:
    alone = plain_run(loop)
    assert alone.returncode == 0, alone.stderr
    report = document("profile", "-o", "report.json", "--", *loop.demo.command, cwd=loop.where)
    assert report["exit_code"] == 0
    assert report["lost"] == 0
    assert (
        report["dispatches"] == report["timed"] == sum(kernel["calls"] for kernel in report["kernels"]) > 50
    )
    assert report["kernels"][0]["total_ns"] == max(kernel["total_ns"] for kernel in report["kernels"])
    assert "mul_mat_vec_q" in {
        re.split(r"[<(]", kernel["name"])[0].split()[-1] for kernel in report["kernels"]
    }
    shown = kerncap("profile", "--", *loop.demo.command, cwd=loop.where).stdout
    printed = shown[: shown.index(f"{DEVICE}: ")]
    steady = re.compile(rb"[0-9.]+ (s|ms)\b")  # the program prints how long it took
    assert steady.sub(b"", printed.encode()) == steady.sub(b"", alone.stdout)


def test_extraction_is_whole_and_replays_to_the_applications_result(loop: Loop) -> None:
    assert loop.extracted["output"] == "isolated/mul_mat_vec_q"
    assert loop.extracted["baseline"]["verdict"] == "IDENTICAL"
    assert loop.extracted["source"]["variant"] == "kernel_variant.cpp"
    assert loop.extracted["arch"] == "gfx942"
    assert loop.extracted["bytes"] > 0
    assert (loop.directory / "Makefile").exists()
    assert loop.directory.stat().st_mode & 0o077 == 0
    listed = document("list", cwd=loop.where)["captures"]
    assert [(one["kernel"], one["verdict"]) for one in listed] == [("mul_mat_vec_q", "IDENTICAL")]
    shown = document("inspect", "isolated/mul_mat_vec_q", cwd=loop.where)["capture"]
    assert shown["kernel"]["symbol"] == loop.extracted["symbol"]
    assert any("pointer" in argument for argument in shown["arguments"])


def test_replay_times_it(loop: Loop) -> None:
    timing = document("replay", str(loop.directory), "--iterations", "10", cwd=loop.where)
    assert timing["iterations"] == 10
    assert "simulated" in timing["timer"]
    assert len(timing["samples_ns"]) == 10
    assert timing["median_ns"] > 0


@pytest.fixture
def edited(loop: Loop) -> Callable[[object], Path]:
    """Edits the variant, rebuilds it, and gives the object; the source is put back at the end."""
    source = loop.directory / "kernel_variant.cpp"
    original = source.read_bytes()

    def apply(edit: object) -> Path:
        edit.apply(source)  # type: ignore[attr-defined]
        subprocess.run(
            ["make", "-C", str(loop.directory), "recompile"], check=True, timeout=200, capture_output=True
        )
        return loop.directory / "optimized.hsaco"

    yield apply  # type: ignore[misc]
    source.write_bytes(original)


def test_right_edit_is_faster_and_identical(loop: Loop, edited: Callable[[object], Path]) -> None:
    hsaco = str(edited(HOIST))
    before = document("replay", str(loop.directory), "--iterations", "5", cwd=loop.where)
    after = document("replay", str(loop.directory), "--hsaco", hsaco, "--iterations", "5", cwd=loop.where)
    assert after["median_ns"] < before["median_ns"]
    verdict = document("validate", str(loop.directory), "--hsaco", hsaco, cwd=loop.where)
    assert verdict["verdict"] == "IDENTICAL"
    assert verdict["compared_bytes"] > 0
    assert verdict["skipped_bytes"] == 0
    strict = document("validate", str(loop.directory), "--hsaco", hsaco, "--strict", cwd=loop.where)
    assert strict["verdict"] == "IDENTICAL"
    assert strict["compared_bytes"] > verdict["compared_bytes"]


def test_wrong_edit_fails_with_the_first_element(loop: Loop, edited: Callable[[object], Path]) -> None:
    hsaco = str(edited(WRONG))
    verdict = document("validate", str(loop.directory), "--hsaco", hsaco, cwd=loop.where, code=1)
    assert verdict["verdict"] == "FAIL"
    bad = [region for region in verdict["regions"] if region["mismatches"]]
    assert bad
    assert bad[0]["first"] is not None


def test_extraction_again_is_refused(loop: Loop) -> None:
    error = document("extract", "mul_mat_vec_q", "--cmd", "true", cwd=loop.where, code=2)
    assert "--force" in error["error"]


def test_kernel_that_is_never_launched(loop: Loop) -> None:
    error = document("extract", "mul_mat_vek", "-o", "no", "--", *loop.demo.command, cwd=loop.where, code=5)
    assert "mul_mat_vec_q" in error["launched"][0]["name"]
    assert any("hip" in name for name in error["runtimes"])
    assert not (loop.where / "no").exists()


def test_damage_is_found_by_every_command(loop: Loop) -> None:
    memory = loop.directory / "capture" / "memory.pre"
    size = memory.stat().st_size
    with memory.open("r+b") as file:
        file.seek(size // 2)
        old = file.read(1)
        file.seek(size // 2)
        file.write(bytes([old[0] ^ 0xFF]))
    try:
        for command in ("inspect", "replay", "validate"):
            error = document(command, str(loop.directory), cwd=loop.where, code=6)
            assert "memory.pre" in error["error"]
    finally:
        with memory.open("r+b") as file:
            file.seek(size // 2)
            file.write(old)


def test_costs_are_printed(loop: Loop) -> None:
    table = kerncap("doctor", "--costs", cwd=loop.where).stdout
    assert "simulated" in table.splitlines()[0]
    assert len(re.findall(r"\d cycles", table)) > 5


def test_watch_shows_no_speedup_of_a_wrong_result(loop: Loop, edited: Callable[[object], Path]) -> None:
    right = kerncap("watch", str(loop.directory), "--once", cwd=loop.where).stdout
    assert "IDENTICAL" in right
    assert "SAME" in right
    edited(WRONG)
    wrong = kerncap("watch", str(loop.directory), "--once", cwd=loop.where, code=1).stdout
    assert "FAIL" in wrong
    assert "does not count" in wrong
    assert "FASTER" not in wrong
    tries = document("watch", str(loop.directory), "--once", cwd=loop.where, code=1)["iterations"]
    assert [one["outcome"] for one in tries] == ["failed"]


def test_python_api_is_the_same(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    import kerncap as api

    assert api.replay(loop.directory, iterations=3).to_json()["iterations"] == 3
    assert api.validate(loop.directory).verdict == "IDENTICAL"
    monkeypatch.chdir(loop.where)
    result = api.extract("silu", loop.demo.command, device=DEVICE, output="api", dispatch=2, stdout=2)
    assert (result.kernel, result.dispatch, result.baseline["verdict"]) == ("silu_mul", 2, "IDENTICAL")
    with pytest.raises(api.KerncapError, match="fits 2 kernels"):
        api.extract("mat_vec", loop.demo.command, device=DEVICE, output="never", stdout=2)
    assert not Path("never").exists()


def test_interrupt_at_any_moment_leaves_nothing(loop: Loop) -> None:
    command = [
        sys.executable,
        "-m",
        "kerncap",
        "extract",
        "attention",
        "-o",
        "out/k",
        "--",
        *loop.demo.command,
    ]
    environment = {**os.environ, "KERNCAP_DEVICE": DEVICE, "PYTHONPATH": str(APP)}
    for step in range(6):
        process = subprocess.Popen(
            command,
            cwd=loop.where,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(0.3 + 0.2 * step)
        number = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP][step % 3]
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert "Traceback" not in errors
        # Before kerncap has its handlers, the system's own end it.
        assert process.returncode in (0, 130, -number), errors
        if process.returncode:
            assert not (loop.where / "out").exists()
        else:
            shutil.rmtree(loop.where / "out")
