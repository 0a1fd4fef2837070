"""The edit loop whole: a real compiler, the resident replayer, and a simulated gfx942."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import make_capture
import numpy as np
import pytest
from hip_tree import Tree
from project import make, program

from kerncap.cli.entry import run
from kerncap.core.capture import manifest
from kerncap.core.capture.reading import read_capture
from kerncap.core.code.reading import read_code_object
from kerncap.core.errors import UsageError
from kerncap.core.extract.reproducer import write_reproducer
from kerncap.core.judge.validate import validate
from kerncap.core.loop.bench import ReplayBench
from kerncap.core.loop.events import Event, Timed
from kerncap.core.loop.session import EditLoop

ADDRESS = 0x700000000000


@pytest.fixture
def out(tree: Tree, tmp_path: Path) -> Path:
    """A capture of `scale`, which doubles 64 floats, as the program's run left them."""
    hsaco = program(tree)
    code = read_code_object(hsaco)
    (symbol,) = code.kernel_names
    before = np.arange(1, 1025, dtype=np.float32)
    after = np.where(np.arange(1024) < 64, before * 2, before).astype(np.float32)
    explicit = ADDRESS.to_bytes(8, "little") + (64).to_bytes(4, "little")
    kernargs = explicit + bytes(code.kernel(symbol).kernarg_bytes - len(explicit))
    memory = [make_capture.Memory(ADDRESS, before, after)]
    directory = tmp_path / "isolated"
    spec = make_capture.Spec(hsaco.read_bytes(), symbol, (64, 1, 1), (64, 1, 1), kernargs, memory)
    make_capture.write(directory / "capture", spec)
    document = manifest.build(read_capture(directory / "capture"), device_name="sim:gfx942")
    manifest.write(directory / "capture", document | {"state": manifest.COMPLETE})
    assert write_reproducer(directory / "capture", directory, source_dir=tree.root).rebuilt == "identical"
    return directory


def test_edits_get_their_verdicts_from_one_resident_replayer(out: Path) -> None:
    variant = out / "kernel_variant.cpp"
    original = variant.read_text()
    body = "if (i < n) p[i] = twice(p[i]);"
    edits = [
        (body, "passed", "IDENTICAL"),
        ("if (i < n) p[i] = p[i] + p[i];", "passed", "IDENTICAL"),
        ("if (i < n - 1) p[i] = twice(p[i]);", "failed", "FAIL"),
        ("", "failed", "FAIL"),
        ("if (i < n) p[i + (1 << 20)] = twice(p[i]);", "failed", "FAIL"),
        ("volatile int z = 0; while (z == 0) {}", "failed", "FAIL"),
        ("if (i < n) p[i] = twice(p[i]) * undeclared;", "build-failed", None),
        (body, "passed", "IDENTICAL"),
    ]
    events: list[Event] = []
    with EditLoop(out, ReplayBench(out, "sim:gfx942", limit_s=2), events.append) as loop:
        loop.bench.prepare()
        for text, outcome, verdict in edits:
            variant.write_text(original.replace(body, text))
            kept = loop.attempt()
            assert kept
            found = kept.document.get("validation", {}).get("verdict")
            assert (text, kept.outcome, found) == (text, outcome, verdict)
            if "<< 20" in text:
                assert "0x700000400" in kept.document["validation"]["summary"]
    timings = [e.timing for e in events if isinstance(e, Timed) and e.timing]
    assert len(timings) == 5
    for timing in timings:
        assert "simulated" in timing.timer
        assert len(set(timing.baseline_ns)) == 1
    assert timings[0].ratio == 1
    assert timings[0].speed == "SAME"


def test_a_slip_in_compile_json_is_no_damaged_capture(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = out / "compile.json"
    path.write_text(path.read_text() + "}\n")
    lines = len(path.read_text().splitlines())
    assert run(["watch", str(out), "--once"]) == 2
    said = capsys.readouterr().err
    assert f"compile.json: line {lines}, column 1: something follows the end of the document" in said
    assert "Error(" not in said


def test_make_targets(out: Path) -> None:
    for target in ("run", "recompile", "run-variant", "validate"):
        done = make(out, target)
        assert done.returncode == 0, f"{target}: {done.stdout}{done.stderr}"
    text = (out / "kernel_variant.cpp").read_text()
    (out / "kernel_variant.cpp").write_text(text.replace("i < n", "i < n - 1"))
    assert make(out, "recompile").returncode == 0
    done = make(out, "validate")
    assert done.returncode != 0
    assert "FAIL" in done.stdout + done.stderr


def test_an_older_object_is_not_judged_for_a_newer_source(out: Path) -> None:
    """The object passes; then its source is broken and not rebuilt: there is no verdict on the old object."""
    assert make(out, "recompile").returncode == 0
    assert validate(out, hsaco=out / "optimized.hsaco").verdict == "IDENTICAL"
    variant = out / "kernel_variant.cpp"
    variant.write_text(variant.read_text().replace("twice(p[i]);", "p[i];"))
    with pytest.raises(UsageError, match=r"older than kernel_variant\.cpp"):
        validate(out, hsaco=out / "optimized.hsaco")
    finished = make(out, "validate")  # rebuilds first
    assert finished.returncode != 0
    assert "FAIL" in finished.stdout + finished.stderr


def test_a_replayer_that_ended_while_idle_costs_no_attempt(out: Path) -> None:
    """Killed by someone, or for want of memory, between two saves."""
    bench = ReplayBench(out, "sim:gfx942", time_limit_s=0.5)
    events: list[Event] = []
    loop = EditLoop(out, bench, events.append)
    first = loop.attempt()
    assert first is not None
    assert first.outcome == "passed"
    assert bench._replayer is not None
    pid = bench._replayer.process.pid
    os.kill(pid, signal.SIGKILL)
    variant = out / "kernel_variant.cpp"
    variant.write_text(variant.read_text() + "\n")
    second = loop.attempt()
    assert second is not None
    assert second.outcome == "passed", second
    assert bench._replayer.process.pid != pid
    bench.close()


def test_a_compiler_without_descriptors_is_no_fault_of_the_source(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    events: list[Event] = []
    bench = ReplayBench(out, "sim:gfx942", time_limit_s=0.5)
    loop = EditLoop(out, bench, events.append)
    monkeypatch.setattr("kerncap.core.build.toolchain.subprocess.Popen", none_left)
    kept = loop.attempt()
    bench.close()
    assert kept is not None
    assert kept.outcome == "error"
    error = kept.document["error"]
    assert (error["step"], error["exit_code"]) == ("build", 4)
    assert "cannot be started: Too many open files" in error["message"]
    assert "ulimit -n" in error["message"]
