"""Sources of attempts: differences between them, going back, and steps asked for between saves."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from hip_tree import Tree
from project import program, reproducer
from test_session import Running, SizeBench, edit, names

from kerncap.core.errors import KerncapError, UsageError
from kerncap.core.loop.events import (
    Event,
    Failed,
    Finished,
    Repeating,
    Superseded,
    Validated,
    Validation,
    Watching,
)
from kerncap.core.loop.history import KEPT, captured_sources, changed_lines, diff, go_back, iteration_sources
from kerncap.core.loop.iterations import find_iteration, list_iterations
from kerncap.core.loop.loop_worker import Request
from kerncap.core.loop.session import EditLoop


@pytest.fixture
def out(tree: Tree, tmp_path: Path) -> Path:
    reproducer(tmp_path / "isolated", program(tree), tree.root)
    return tmp_path / "isolated"


def test_what_changed_has_the_lines_numbers() -> None:
    before = {"a.cpp": b"one\ntwo\nthree\n", "same.h": b"x\n"}
    found = diff(before, {"a.cpp": b"one\n2\n3\nthree\n", "same.h": b"x\n"})
    assert [(line.kind, line.text, line.old, line.new) for line in found] == [
        ("file", "a.cpp", 0, 0),
        ("place", "@@ -1,3 +1,4 @@", 1, 1),
        ("same", "one", 1, 1),
        ("removed", "two", 2, 0),
        ("added", "2", 0, 2),
        ("added", "3", 0, 3),
        ("same", "three", 3, 4),
    ]
    assert changed_lines(before, {"a.cpp": b"one\n2\n3\nthree\n"}) == (2, 2)  # same.h is gone: one line less


def test_back_to_an_attempt_loses_nothing(out: Path) -> None:
    source = out / "kernel_variant.cpp"
    os.chmod(source, 0o644)
    events: list[Event] = []
    with EditLoop(out, SizeBench(), events.append) as loop:
        first = loop.attempt()
    assert first
    edit(source, "i < n", "i + 1 <= n")
    never_tried = source.read_bytes()
    changed, aside = go_back(out, first, list_iterations(out))
    assert changed == ["kernel_variant.cpp"]
    assert source.read_bytes() == captured_sources(out)["kernel_variant.cpp"]
    assert source.stat().st_mode & 0o777 == 0o644
    assert aside == 2
    kept = find_iteration(out, 2)
    assert kept.outcome == KEPT
    assert iteration_sources(kept)["kernel_variant.cpp"] == never_tried
    assert go_back(out, first, list_iterations(out)) == ([], None)
    assert go_back(out, kept, list_iterations(out)) == (["kernel_variant.cpp"], None)
    assert source.read_bytes() == never_tried


def test_going_back_where_nothing_can_be_written_says_so(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EditLoop(out, SizeBench(), lambda _: None) as loop:
        first = loop.attempt()
    assert first
    edit(out / "kernel_variant.cpp", "i < n", "i + 1 <= n")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    known = list_iterations(out)
    monkeypatch.setattr("kerncap.core.loop.history.write_atomically", full)
    monkeypatch.setattr("kerncap.core.loop.history.Keeper.open", lambda *_: (2, out / "iterations"))
    monkeypatch.setattr("kerncap.core.loop.history.Keeper.close", lambda *_: None)
    with pytest.raises(KerncapError, match=r"kernel_variant\.cpp.*No space left"):
        go_back(out, first, known)


def test_damaged_records_do_not_hide_the_others(out: Path) -> None:
    with EditLoop(out, SizeBench(), lambda _: None) as loop:
        for _ in range(3):
            loop.attempt()
    (out / "iterations/002/iteration.json").write_text("{")
    problems: list[str] = []
    assert [i.number for i in list_iterations(out, problems)] == [1, 3]
    assert len(problems) == 1
    assert "002/iteration.json" in problems[0]
    assert find_iteration(out, 0).number == 3
    with pytest.raises(UsageError, match="holds no complete attempt"):
        find_iteration(out, 9)
    whole = json.loads((out / "iterations/003/iteration.json").read_text())
    for number in ("NaN", "-Infinity", "1e999"):
        text = json.dumps({**whole, "seconds": {"build": 7.25}}).replace("7.25", number)
        (out / "iterations/003/iteration.json").write_text(text)
        assert [i.number for i in list_iterations(out, [])] == [1], number
    (out / "iterations/003/iteration.json").write_text("[" * 100_000)
    assert [i.number for i in list_iterations(out, [])] == [1]


class StrictBench(SizeBench):
    """Fails strict comparisons, and can be interrupted."""

    def __init__(self) -> None:
        super().__init__()
        self.modes: list[str] = []
        self.let_go = threading.Event()
        self.hang = False

    def time(self, hsaco: Path):  # type: ignore[no-untyped-def]
        self.started.set()
        if self.hang and not self.let_go.wait(20):
            raise AssertionError("nobody interrupted a step that never ends")
        return super().time(hsaco)

    def validate(self, hsaco: Path, mode: str = "default") -> Validation:
        self.modes.append(mode)
        if mode == "strict":
            return Validation("FAIL", "a byte elsewhere", {"mode": "strict"})
        return super().validate(hsaco)

    def interrupt(self) -> None:
        self.let_go.set()


def test_a_step_asked_for_again_changes_the_record(out: Path) -> None:
    bench = StrictBench()
    running = Running(out, bench)
    running.wait(Finished)
    running.loop.ask(Request("validate", "strict"))
    running.wait(Finished, 2)
    assert names(running.events)[-3:] == ["Repeating", "Validated", "Finished"]
    record = json.loads((out / "iterations/001/iteration.json").read_text())
    assert record["outcome"] == "failed"
    assert record["validation"]["mode"] == "strict"
    assert record["timing"]["variant_median_ns"]
    running.loop.ask(Request("validate"))
    running.loop.ask(Request("replay", number=1))
    running.wait(Finished, 4)
    assert find_iteration(out, 1).outcome == "passed"
    assert bench.modes == ["default", "strict", "default"]
    running.loop.ask(Request("replay", number=7))
    failed = running.wait(Failed)
    assert isinstance(failed, Failed)
    assert "007" in failed.message
    running.stop()


def test_watching_off_and_on_again_catches_up(out: Path) -> None:
    running = Running(out, StrictBench())
    running.wait(Finished)
    running.loop.watching = False
    edit(out / "kernel_variant.cpp", "i < n", "i + 1 <= n")
    time.sleep(0.5)
    assert len(list_iterations(out)) == 1
    running.loop.watching = True
    running.wait(Finished, 2)
    running.loop.build()  # as it stands, changed or not
    running.wait(Finished, 3)
    running.stop()


def test_giving_up_ends_a_step_that_never_ends(out: Path) -> None:
    bench = StrictBench()
    bench.hang = True
    running = Running(out, bench)
    running.wait(Watching)
    assert bench.started.wait(20)
    running.loop.cancel()
    running.wait(Superseded, limit_s=5)
    assert find_iteration(out, 1).outcome == "superseded"
    bench.hang = False
    running.loop.build()
    running.wait(Finished)
    running.stop()


def test_a_save_ends_a_step_that_never_ends(out: Path) -> None:
    bench = StrictBench()
    bench.hang = True
    running = Running(out, bench)
    assert bench.started.wait(20)
    edit(out / "kernel_variant.cpp", "i < n", "i + 1 <= n")
    running.wait(Superseded, limit_s=10)
    running.wait(Finished)
    running.stop()
    assert Repeating not in [type(e) for e in running.events]


def test_a_full_disk_is_an_event_and_the_loop_goes_on(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(out, StrictBench())
    running.wait(Finished)
    with monkeypatch.context() as patch:

        def full(*_: object) -> None:
            raise UsageError("iterations cannot be written: No space left on device.")

        patch.setattr("kerncap.core.loop.iterations.Keeper.open", full)
        running.loop.build()
        failed = running.wait(Failed)
        assert isinstance(failed, Failed)
        assert (failed.step, "No space left" in failed.message) == ("keep", True)
    running.loop.build()
    running.wait(Finished, 2)
    assert isinstance(running.wait(Validated, 2), Validated)
    running.stop()
