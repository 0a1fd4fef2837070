"""The edit loop's engine with a real compiler and a bench that stands in for the replayer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from pathlib import Path

import pytest
from hip_tree import Tree
from project import program, reproducer

from kerncap.cli.watch_command import Lines
from kerncap.core.build.patch import make_patch, write_patch
from kerncap.core.build.recompile import recompile
from kerncap.core.code.reading import machine_code, read_code_object
from kerncap.core.errors import DeviceError, KerncapError, UsageError, WorkloadError
from kerncap.core.judge.verdict import EXIT_CODES
from kerncap.core.loop import session
from kerncap.core.loop.events import Event, Finished, Saved, Superseded, Timing, Validated, Validation
from kerncap.core.loop.iterations import VERDICTS, Keeper, list_iterations
from kerncap.core.loop.loop_worker import AttemptWorker, Request
from kerncap.core.loop.session import EditLoop
from kerncap.core.replay.replayer import KernelFault, KernelTimeout


class SizeBench:
    """Times a kernel by the size of its code, and validates it against the first one it saw."""

    def __init__(self) -> None:
        self.first: bytes | None = None
        self.delay_s = 0.0
        self.fault: KerncapError | None = None
        self.closed = False
        self.started = threading.Event()

    def prepare(self) -> None:
        pass

    def _code(self, hsaco: Path) -> bytes:
        made = read_code_object(hsaco)
        return machine_code(made, made.kernel_names[0]) or b""

    def time(self, hsaco: Path) -> Timing:
        self.started.set()
        time.sleep(self.delay_s)
        if self.fault is not None:
            raise self.fault
        code = self._code(hsaco)
        self.first = self.first or code
        base, size = len(self.first), len(code)
        return Timing(
            (base,), (size,), base, size, base / size, "SAME" if base == size else "SLOWER", "bytes"
        )

    def validate(self, hsaco: Path) -> Validation:
        same = self._code(hsaco) == self.first
        return Validation("IDENTICAL" if same else "FAIL", "" if same else "other code")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def out(tree: Tree, tmp_path: Path) -> Path:
    reproducer(tmp_path / "isolated", program(tree), tree.root)
    return tmp_path / "isolated"


def names(events: list[Event]) -> list[str]:
    return [type(e).__name__ for e in events]


def edit(path: Path, old: str, new: str) -> None:
    """A save as editors do it: written beside, then renamed over."""
    text = path.read_text()
    assert old in text
    beside = path.with_name(f".{path.name}.swp")
    beside.write_text(text.replace(old, new))
    beside.rename(path)


class Running:
    """A loop in a thread of its own, and waiting for its events with a limit."""

    def __init__(self, out: Path, bench: SizeBench, **options: object) -> None:
        self.events: list[Event] = []
        self.loop = EditLoop(out, bench, self.events.append, **options)  # type: ignore[arg-type]
        self.thread = threading.Thread(target=self.loop.run)
        self.thread.start()

    def wait(self, kind: type[Event], count: int = 1, limit_s: float = 20.0) -> Event:
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            found = [e for e in self.events if isinstance(e, kind)]
            if len(found) >= count:
                return found[count - 1]
            time.sleep(0.005)
        raise AssertionError(f"no {kind.__name__} number {count} within {limit_s} s: {names(self.events)}")

    def stop(self) -> None:
        self.loop.close()
        self.thread.join(20)
        assert not self.thread.is_alive()


def test_a_save_in_the_first_attempt_counts_from_itself() -> None:
    class Loop:
        stopping = False

        def __init__(self) -> None:
            self.content, self.given_up = "as it stands", 0
            self.attempts: list[tuple[tuple[str, ...], float]] = []
            self.saved_at = 0.0

        def begin(self) -> bool:
            return True

        def digest(self) -> str:
            return self.content

        def give_up(self) -> None:
            self.given_up += 1

        def attempt_or_say(self, files: tuple[str, ...], noticed: float) -> None:
            self.attempts.append((files, noticed))
            if len(self.attempts) == 1:
                worker.saved([])  # the watcher has begun, and catches up: nothing was saved
                assert self.given_up == 0
                self.saved_at, self.content = time.perf_counter(), "edited"
                worker.saved(["k.hip"])
                assert self.given_up == 1

    loop = Loop()
    worker = AttemptWorker(loop, True, "")  # type: ignore[arg-type]
    assert worker._turn()
    assert worker._turn()
    (first, began), (second, noticed) = loop.attempts
    assert (first, second) == ((), ("k.hip",))
    assert began < loop.saved_at <= noticed


def test_an_attempt_says_each_step_and_keeps_it(out: Path) -> None:
    events: list[Event] = []
    with EditLoop(out, SizeBench(), events.append) as loop:
        kept = loop.attempt()
    assert kept
    assert names(events) == ["Saved", "Built", "Timed", "Validated", "Finished"]
    assert kept.outcome == "passed"
    assert kept.document["validation"]["verdict"] == "IDENTICAL"
    assert set(kept.document["seconds"]) == {"build", "replay", "validate", "total"}
    assert (kept.directory / "variant.hsaco").is_file()
    assert (kept.directory / "source/kernel_variant.cpp").read_bytes() == (
        out / "kernel_variant.cpp"
    ).read_bytes()
    assert (kept.directory / "source/deps/include/scale.h").is_file()
    assert kept.directory.stat().st_mode & 0o077 == 0
    assert [i.number for i in list_iterations(out)] == [1]


def test_only_an_attempt_that_passes_has_a_speedup_on_record(out: Path) -> None:
    bench = SizeBench()
    with EditLoop(out, bench, lambda _: None) as loop:
        right = loop.attempt()
        edit(out / "kernel_variant.cpp", "i < n", "i < n && i != 3")
        wrong = loop.attempt()
        assert right
        assert wrong
        assert (right.document["timing"]["speedup"], right.document["timing"]["speed"]) == (1.0, "SAME")
        assert wrong.outcome == "failed"
        kept = json.loads((wrong.directory / "iteration.json").read_text())["timing"]
        assert (kept["speedup"], kept["speed"], kept["counts"]) == (None, None, False)
        assert kept["variant_median_ns"] > 0
        bench.first = bench._code(wrong.directory / "variant.hsaco")  # what it writes is right after all
        loop.repeat(Request("validate", number=wrong.number))
    kept = json.loads((wrong.directory / "iteration.json").read_text())
    assert kept["outcome"] == "passed"
    assert kept["timing"]["speedup"] == pytest.approx(
        kept["timing"]["baseline_median_ns"] / kept["timing"]["variant_median_ns"]
    )


def test_build_failure_is_an_event_with_the_copies_names(out: Path) -> None:
    events: list[Event] = []
    edit(out / "kernel_variant.cpp", "i < n", "i < undeclared")
    with EditLoop(out, SizeBench(), events.append) as loop:
        kept = loop.attempt()
    assert names(events) == ["Saved", "BuildFailed", "Finished"]
    assert kept
    assert kept.outcome == "build-failed"
    assert "kernel_variant.cpp:3" in kept.document["build"]["output"]


def test_a_variant_with_other_arguments_builds_and_does_not_fit(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(out / "kernel_variant.cpp", "scale(T* p, int n)", "scale(T* p, int n, int more)")
    edit(out / "kernel_variant.cpp", "scale<float>(float*, int)", "scale<float>(float*, int, int)")
    events: list[Event] = []
    with EditLoop(out, SizeBench(), events.append) as loop:
        kept = loop.attempt()
    assert names(events) == ["Saved", "Failed", "Finished"]
    assert kept
    assert (kept.outcome, kept.document["error"]["exit_code"]) == ("error", 2)
    assert kept.document["error"]["step"] == "fit"
    line = Lines().line(events[1])
    assert line
    assert "built, but does not fit the captured launch" in line
    assert "does not build" not in line


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (KernelFault("write to memory that is not allocated at 0x10", 0x10), "failed"),
        (KernelTimeout("the dispatch did not end within 2 s"), "failed"),
        (DeviceError("the GPU is gone"), "error"),
    ],
)
def test_faults_and_endless_kernels_fail_and_the_loop_lives_on(
    out: Path, error: KerncapError, outcome: str
) -> None:  # R4, R5
    events: list[Event] = []
    bench = SizeBench()
    with EditLoop(out, bench, events.append) as loop:
        bench.fault = error
        kept = loop.attempt()
        assert kept
        assert kept.outcome == outcome
        told = {"step": "replay", "message": error.message, "exit_code": error.exit_code}
        assert kept.document["error"] == told
        verdicts = [e.validation.verdict for e in events if isinstance(e, Validated) and e.validation]
        assert verdicts == (["FAIL"] if outcome == "failed" else [])
        bench.fault = None
        assert loop.attempt()
    assert names(events)[-5:] == ["Saved", "Built", "Timed", "Validated", "Finished"]


@pytest.mark.parametrize("poll_ms", [None, 30])
def test_every_save_of_the_unit_or_a_header_is_an_attempt(out: Path, poll_ms: int | None) -> None:
    running = Running(out, SizeBench(), poll_ms=poll_ms)
    try:
        first = running.wait(Finished)
        edit(out / "kernel_variant.cpp", "i < n", "i < n - 1")
        second = running.wait(Finished, 2)
        edit(out / "deps/include/scale.h", "x * FACTOR", "x + FACTOR")
        running.wait(Finished, 3)
        (out / "kernel_variant.cpp").touch()
        (out / "notes.txt").write_text("not a source")
        time.sleep(0.5)
    finally:
        running.stop()
    outcomes = [i.outcome for i in list_iterations(out)]
    assert outcomes == ["passed", "failed", "failed"]
    saves = [e.files for e in running.events if isinstance(e, Saved)]
    assert saves == [(), ("kernel_variant.cpp",), ("deps/include/scale.h",)]
    assert isinstance(first, Finished)
    assert isinstance(second, Finished)
    assert second.seconds < 1.5


@pytest.mark.parametrize("first", [True, False])
def test_a_save_while_the_loop_begins_is_an_attempt(out: Path, first: bool) -> None:
    class SlowBench(SizeBench):
        def prepare(self) -> None:
            edit(out / "kernel_variant.cpp", "i < n", "i < n - 1")

    events: list[Event] = []
    loop = EditLoop(out, SlowBench(), events.append)
    thread = threading.Thread(target=loop.run, kwargs={"first": first})
    thread.start()
    deadline = time.monotonic() + 20
    while "Finished" not in names(events):
        assert time.monotonic() < deadline, names(events)
        time.sleep(0.01)
    loop.close()
    thread.join(20)
    (kept,) = list_iterations(out)
    assert b"i < n - 1" in (kept.directory / "source/kernel_variant.cpp").read_bytes()


def test_a_save_in_the_middle_gives_up_the_attempt(out: Path) -> None:
    bench = SizeBench()
    running = Running(out, bench)
    try:
        running.wait(Finished)
        bench.delay_s = 0.6
        bench.started.clear()
        edit(out / "kernel_variant.cpp", "i < n", "i < n - 1")
        assert bench.started.wait(20)
        edit(out / "kernel_variant.cpp", "i < n - 1", "i < n - 2")
        running.wait(Superseded)
        bench.delay_s = 0
        running.wait(Finished, 2)
    finally:
        running.stop()
    assert [i.outcome for i in list_iterations(out)] == ["passed", "superseded", "failed"]
    last = list_iterations(out)[-1]
    assert "i < n - 2" in (last.directory / "source/kernel_variant.cpp").read_text()


def test_stop_ends_a_long_compile_at_once(out: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow clang"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    document = json.loads((out / "compile.json").read_text())
    document["arguments"][:2] = [str(slow)]
    (out / "compile.json").write_text(json.dumps(document))
    running = Running(out, SizeBench())
    running.wait(Saved)
    time.sleep(0.1)
    started = time.monotonic()
    running.stop()
    assert time.monotonic() - started < 5
    assert running.loop.bench.closed  # type: ignore[attr-defined]


def test_numbers_go_on_and_half_written_attempts_do_not_count(out: Path) -> None:
    with EditLoop(out, SizeBench(), lambda _: None) as loop:
        loop.attempt()
    (out / "iterations/007").mkdir()
    with EditLoop(out, SizeBench(), lambda _: None) as loop:
        kept = loop.attempt()
    assert kept
    assert kept.number == 8
    assert [i.number for i in list_iterations(out)] == [1, 8]


def test_without_keeping_nothing_is_left(out: Path) -> None:
    before = {p for p in out.rglob("*")}
    with EditLoop(out, SizeBench(), lambda _: None, keep=False) as loop:
        assert loop.attempt()
    assert {p for p in out.rglob("*")} == before


def git(tree: Path, *words: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("header", ["scale.h", 'sc"a l\u00e9.h'])
def test_patch_applies_to_the_programs_tree(tree: Tree, tmp_path: Path, header: str) -> None:
    hsaco = program(tree)
    if header != "scale.h":
        (tree.root / "include/scale.h").rename(tree.root / "include" / header)
        unit = (tree.root / "src/k.hip").read_text().replace('"scale.h"', f"<{header}>")
        (tree.root / "src/k.hip").write_text(unit.rstrip("\n"))  # no line end at the end of the file
    git(tree.root, "init", "-q")
    git(tree.root, "add", "-A")
    git(tree.root, "commit", "-qm", "program")
    out = tmp_path / "isolated"
    assert reproducer(out, hsaco, tree.root).variant
    with pytest.raises(UsageError, match="Nothing was edited"):
        make_patch(out)
    edit(out / "kernel_variant.cpp", "i < n", "i < n - 1")
    edit(out / "kernel_variant.cpp", "scale<float>(float*, int);", "scale<float>(float*, int); // end")
    edit(out / f"deps/include/{header}", "x * FACTOR", "x + FACTOR")
    patch = write_patch(out)
    assert (patch.root, patch.applies, patch.outside) == (tree.root, True, ())
    assert patch.files == (f"include/{header}", "src/k.hip")
    git(tree.root, "apply", str(out / "variant.patch"))
    assert (tree.root / "src/k.hip").read_bytes() == (out / "kernel_variant.cpp").read_bytes()
    assert (tree.root / "include" / header).read_bytes() == (out / f"deps/include/{header}").read_bytes()
    assert make_patch(out).applies is False


@pytest.mark.parametrize("how", ["another content", "the same content"])
def test_a_verdict_is_of_the_source_kept_with_it(
    out: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A save comes before the compiler reads the file, and nothing watches."""
    path = out / "kernel_variant.cpp"
    wanted = path.read_text().replace("i < n", "i < n - 1") if how == "another content" else path.read_text()
    compiled = []

    def saved_before(*args: object, **options: object) -> object:
        if not compiled:
            beside = path.with_name("beside")
            beside.write_text(wanted)
            beside.rename(path)
        compiled.append(path.read_text())
        return recompile(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(session, "recompile", saved_before)
    events: list[Event] = []
    with EditLoop(out, SizeBench(), events.append) as loop:
        kept = loop.attempt()
    assert kept
    assert [i.outcome for i in list_iterations(out)] == ["superseded", "passed"]
    assert (kept.directory / "source/kernel_variant.cpp").read_text() == compiled[-1] == wanted
    assert names(events)[-1] == "Finished"


def test_a_save_during_the_compile_is_tried_once_more_by_the_loop(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, compiled = out / "kernel_variant.cpp", []

    def saved_before(*args: object, **options: object) -> object:
        if not compiled:
            edit(path, "i < n", "i < n - 1")
        compiled.append(path.read_text())
        return recompile(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(session, "recompile", saved_before)
    events: list[Event] = []
    loop = EditLoop(out, SizeBench(), events.append, poll_ms=60_000)  # which sees nothing in this time
    loop.watching = False
    thread = threading.Thread(target=loop.run)
    thread.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not any(isinstance(e, Finished) for e in events):
        time.sleep(0.005)
    loop.close()
    thread.join(20)
    assert [i.outcome for i in list_iterations(out)] == ["superseded", "passed"]
    assert compiled[0] == compiled[1]


def test_two_sessions_on_one_reproducer_keep_their_attempts(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Keeper(out), Keeper(out)
    looked = Path.iterdir

    def overtaken(folder: Path) -> list[Path]:
        found = list(looked(folder))
        monkeypatch.setattr(Path, "iterdir", looked)
        assert second.open({"a": b"2"})[0] == 1  # between the other one's look and its step
        return found

    monkeypatch.setattr(Path, "iterdir", overtaken)
    number, folder = first.open({"a": b"1"})
    assert (number, (folder / "source/a").read_bytes()) == (2, b"1")


def test_attempts_need_a_directory(out: Path) -> None:
    (out / "iterations").symlink_to("nowhere")
    with pytest.raises(UsageError, match="is no directory"):
        Keeper(out).open({})


def test_a_full_disk_is_no_failed_build(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise WorkloadError("clang found no room for what it makes")

    monkeypatch.setattr(session, "recompile", full)
    events: list[Event] = []
    with EditLoop(out, SizeBench(), events.append) as loop:
        kept = loop.attempt()
    assert kept
    assert (kept.outcome, kept.document["error"]["exit_code"]) == ("error", 5)
    assert names(events) == ["Saved", "Failed", "Finished"]


@pytest.mark.parametrize(
    ("garbage", "said"),
    [
        ('"outcome": "zork"', "outcome 'zork'"),
        ('"outcome": "passed", "validation": {"verdict": 7}', "verdict 7"),
        ('"outcome": "passed", "timing": {"variant_ns": [NaN]}', "nan is no number|NaN is no number"),
        ('"outcome": "passed", "timing": {"variant_median_ns": 1e999}', "1e999 is no number"),
        ('"outcome": "passed", "timing": ' + "[" * 100_000, "cannot be read"),
    ],
)
def test_an_attempt_that_cannot_be_read_is_passed_over_and_named(out: Path, garbage: str, said: str) -> None:
    for number, text in ((1, '"outcome": "failed"'), (2, garbage)):
        folder = out / f"iterations/{number:03d}"
        folder.mkdir(parents=True)
        (folder / "iteration.json").write_text('{"schema": "kerncap-iteration/1", ' + text + "}")
    problems: list[str] = []
    assert [i.number for i in list_iterations(out, problems)] == [1]
    (problem,) = problems
    assert "002/iteration.json" in problem
    assert re.search(said, problem)


def test_the_words_of_verdicts_are_those_of_validate() -> None:
    assert set(VERDICTS) == set(EXIT_CODES)
