"""A Triton kernel in the workbench: its pinned configuration, and this capture under each candidate."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from svg_cells import differences
from test_workbench_pictures import DRAWN_WITH, SNAPSHOTS, iterations
from textual import __version__ as textual_version

from kerncap.core.build.triton_pinned import Change, entries, pinned_changes, read_pinned
from kerncap.core.errors import KerncapError, UsageError
from kerncap.core.loop.candidates import CandidateResult, CandidatesResult, Source, as_recorded
from kerncap.core.triton.triton_record import TritonRecord
from kerncap.source.triton.variant import write_variant
from kerncap.tui.settings import Remembered
from kerncap.tui.workbench import configuration, configuration_text
from tui.workbench.workbench_stage import Bench, FakeBench, Result, workbench

VARIANT = """import triton

def pinned():
    \"\"\"What ran.\"\"\"
    return {
        "grid": (4, 3, 1),
        "constexprs": {
            'BM': 32,
            'SCALE': float("inf"),
        },
        "num_warps": 2,
        "specialized": {'n': 1},
        "options": {'enable_fp_fusion': True},
    }
"""


FIGURES = ["replayed", "time", "verdict", "changed", "max", "abs"]


def candidate(bm: int, warps: int, ms: float, *, chosen: bool = False, **more: Any) -> dict[str, Any]:
    options = {"num_warps": str(warps), "num_stages": "3"}
    values = {"constexprs": {"BM": str(bm)}, "options": options, "times_ms": [ms, ms, ms], "chosen": chosen}
    return {**values, "grid": [4, 3, 1], **more}


def row(**more: Any) -> dict[str, Any]:
    """What the hook wrote down of the kernel."""
    return {
        "schema": "kerncap-triton/1",
        "code_object": "0",
        "triton": "3.9.0",
        "triton_root": "/lib",
        "python": "/bin/python",
        "kernel": "scale",
        "target": ["hip", "gfx942", 64],
        "environment": {},
        "module": "m",
        "function": "f",
        "parameters": [],
        "signature": {},
        "constexprs": {"BM": "32", "SCALE": 'float("inf")', "n": "1"},
        "declared": ["BM", "SCALE"],
        "options": {"backend_name": "'hip'", "num_stages": "3", "num_warps": "2", "num_ctas": "1"},
        "modules": {},
        "candidates": [candidate(16, 1, 2.0), candidate(32, 2, 1.0, chosen=True), candidate(64, 4, 3.0)],
        "tuned": True,
        **more,
    }


@pytest.fixture
def triton(out: Path) -> Path:
    """A reproducer with a record of Triton's. Its source is HIP: nothing here compiles Triton."""
    (out / "capture/triton.json").write_text(json.dumps(row()))
    for folder in (out, out / "capture/source"):
        (folder / "kernel_variant.py").write_text(VARIANT)
    return out


class Tries:
    """In place of the compiles and replays: each candidate ends when the test lets it."""

    def __init__(self) -> None:
        self.go = threading.Semaphore(0)
        self.in_turn = threading.Event()
        self.ended = threading.Event()
        self.problem = ""
        self.failure: KerncapError | None = None
        self.source: Source | None = None

    def __call__(
        self,
        directory: Path,
        *,
        on_source: Callable[[Source], None],
        on_result: Callable[[CandidateResult], None],
        cancel: threading.Event,
        turn: Callable[[], AbstractContextManager[object]],
        **_: Any,
    ) -> CandidatesResult:
        result = CandidatesResult("scale", "sim:gfx942", True, True, (), failure=self.failure)
        try:
            on_source(self.source or Source.of(directory))
            for number, one in enumerate(as_recorded(directory)):
                with turn():
                    self.in_turn.set()
                    assert self.go.acquire(timeout=20)
                    self.in_turn.clear()
                if cancel.is_set():
                    return result
                if self.problem:
                    raise UsageError(self.problem)
                right = one.captured
                on_result(
                    replace(
                        one,
                        median_ns=4340.0 if number == 0 else 4100.0 * number,
                        verdict="IDENTICAL" if right else "FAIL",
                        changed_share=0.0 if right else 0.1165,
                        max_abs=0.0 if right else 0.000488,
                    )
                )
            return result
        finally:
            self.ended.set()


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tries]:
    found = Tries()
    monkeypatch.setattr(configuration, "candidates", found)
    yield found
    found.go.release(10)


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


async def shown(bench: Bench, *parts: str) -> list[list[str]]:
    await bench.until(lambda: all(part in bench.shows("config") for part in parts), f"{parts}")
    return words(bench.shows("config"))


async def test_what_is_pinned_is_a_pane_of_its_own(triton: Path) -> None:
    async with workbench(triton) as bench:
        await bench.attempts(1)
        assert "6 config" in bench.line("tabs")
        await bench.pilot.press("6")
        lines = await shown(bench, "pinned")
        for expected in (
            ["grid", "1", "x", "1", "x", "1", "programs"],
            ["constexprs", "BM=32", 'SCALE=float("inf")'],
            ["options", "num_warps=2", "num_stages=3", "num_ctas=1"],
            ["others", "backend_name='hip'"],
        ):
            assert expected in lines
        # The program's own times at once; ours once they are asked for.
        assert ["BM=16,", "num_warps=1", *["in", "the", "program", "2.000", "ms,", "4x3x1"]] in lines
        assert ["▸◆", "BM=32,", "num_warps=2", *["in", "the", "program", "1.000", "ms,", "4x3x1"]] in lines
        assert lines.count(["-"] * 5) == 3
        assert "the same in all: num_stages=3" in bench.shows("config")
        assert "edited" not in bench.shows("config")


async def test_the_capture_is_replayed_under_each_with_time_and_difference(
    triton: Path, tries: Tries
) -> None:
    async with workbench(triton) as bench:
        await bench.attempts(1)
        await bench.pilot.press("T")
        await shown(bench, "configuration 1 of 3 is compiled, timed")
        assert "1/3 0.0 s · esc" in bench.line("tabs")
        tries.go.release()
        await shown(bench, "configuration 2 of 3", "4.340 us")
        assert "-x" not in bench.shows("config")  # nothing to compare with yet
        await bench.pilot.press("T")
        assert "Configuration 2 of 3 is under way: esc gives up." in bench.told
        tries.go.release(2)
        await bench.until(lambda: bench.told == "The capture was replayed under each configuration.")
        lines = words(bench.shows("config"))
        assert ["4.340", "us", "1.059x", "FAIL", "11.65%", "0.000488"] in lines
        assert ["4.100", "us", "1.000x", "IDENTICAL", "0.00%", "0"] in lines
        assert ["8.200", "us", "2.000x", "FAIL", "11.65%", "0.000488"] in lines


async def test_a_table_says_of_which_source_it_is(triton: Path, tries: Tries) -> None:
    async with workbench(triton) as bench:
        await bench.attempts(1)
        await bench.pilot.press("W")  # else attempts say on the same line what becomes of them
        source = next(triton.glob("kernel_variant.[!p]*"))  # what compile.json names here
        captured = source.read_bytes()
        source.write_bytes(captured + b"\n")
        tries.go.release(2)
        await bench.pilot.press("T")
        await shown(bench, "configuration 3 of 3", "4.100 us", "was edited since the extraction")
        assert "was saved since" not in bench.shows("config")
        source.write_bytes(captured)
        tries.go.release()
        await shown(bench, "8.200 us", "was saved since")
        assert bench.told == "The edited kernel was replayed under each configuration."
        tries.go.release()
        await bench.pilot.press("T")
        await shown(bench, "configuration 2 of 3", "4.340 us")
        for text in ("8.200 us", "edited since", "saved since"):  # of the run before
            assert text not in bench.shows("config")
        source.write_bytes(captured + b" ")
        tries.go.release(2)
        await shown(bench, "8.200 us", "was saved since")


async def test_escape_gives_the_rest_up(triton: Path, tries: Tries) -> None:
    async with workbench(triton, below=True) as bench:
        await bench.attempts(1)
        await bench.pilot.press("T")
        await bench.until(tries.in_turn.is_set)
        await bench.pilot.press("escape")
        assert bench.told.startswith("No more configurations are tried")
        tries.go.release()
        await shown(bench, "Given up.")
        assert tries.ended.is_set()
        assert "4.340 us" not in bench.shows("config")
        await bench.pilot.press("T")
        await shown(bench, "configuration 1 of 3")
        tries.go.release(3)
        await bench.until(lambda: bench.told == "The capture was replayed under each configuration.")
        assert "Given up" not in bench.shows("config")


async def test_an_attempt_waits_for_the_candidate_that_has_the_device(triton: Path, tries: Tries) -> None:
    fake = FakeBench(Result(1000.0))
    async with workbench(triton, fake) as bench:
        await bench.attempts(1)
        await bench.pilot.press("T")
        await bench.until(tries.in_turn.is_set)
        before = fake.times
        await bench.pilot.press("b")
        await bench.until(lambda: bench.screen.busy and "replay" in bench.line("tabs"))
        assert fake.times == before
        tries.go.release()
        await bench.attempts(2)
        assert fake.times > before
        tries.go.release(2)
        await bench.until(tries.ended.is_set)


async def test_an_attempt_that_waits_can_be_given_up(triton: Path, tries: Tries) -> None:
    async with workbench(triton) as bench:
        await bench.attempts(1)
        await bench.pilot.press("T")
        await bench.until(tries.in_turn.is_set)
        await bench.pilot.press("b")
        await bench.until(lambda: bench.screen.busy and "replay" in bench.line("tabs"))
        await bench.pilot.press("escape")
        await bench.until(lambda: not bench.screen.busy)
        assert not tries.ended.is_set()
        tries.go.release(3)
        await shown(bench, "8.200 us")


async def test_a_run_that_cannot_be_says_why_and_the_screen_may_go_meanwhile(
    triton: Path, tries: Tries
) -> None:
    tries.problem = "no such device"
    async with workbench(triton) as bench:
        await bench.attempts(1)
        await bench.pilot.press("T")
        tries.go.release()
        await shown(bench, "no such device")
        assert bench.told == "no such device"
        tries.problem = ""
        tries.ended.clear()
        await bench.pilot.press("T")
        await bench.until(tries.in_turn.is_set)
    tries.go.release(3)
    assert tries.ended.wait(20)


async def test_a_run_in_which_none_could_be_tried_says_why(triton: Path, tries: Tries) -> None:
    tries.failure = UsageError("none of the 3 configurations could be tried")
    async with workbench(triton) as bench:
        await bench.attempts(1)
        await bench.pilot.press("T")
        tries.go.release(3)
        await bench.until(lambda: bench.told == "none of the 3 configurations could be tried")


async def test_an_edit_of_pinned_is_shown_beside_what_ran(triton: Path) -> None:
    async with workbench(triton) as bench:
        await bench.attempts(1)
        await bench.pilot.press("6")
        variant = triton / "kernel_variant.py"
        variant.write_text(VARIANT.replace('"num_warps": 2', '"num_warps": 4').replace("'BM': 32,", ""))
        bench.edit("i < n", "i < n ")
        await bench.attempts(2)
        lines = await shown(bench, "edited")
        assert ["edited", "BM:", "32", "→", "absent"] in lines
        assert ["edited", "num_warps:", "2", "→", "4"] in lines
        variant.write_text("def pinned(:\n")
        await bench.pilot.press("6")
        assert "pinned() in kernel_variant.py cannot be read" in " ".join(bench.shows("config").split())


async def test_other_kernels_have_no_such_pane(out: Path) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        assert "config" not in bench.line("tabs")
        for key in ("6", "T"):
            await bench.pilot.press("1", key)
            assert bench.told == "This kernel is none of Triton's: it has no configuration to pin."
            assert bench.screen.views.pane == "source"


async def test_the_pane_that_was_chosen_for_a_triton_kernel_is_not_another_ones(out: Path) -> None:
    remembered = Remembered()
    remembered.set("workbench.pane", "config")
    async with workbench(out, remembered=remembered) as bench:
        await bench.attempts(1)
        assert bench.screen.views.pane == "source"


async def test_a_kernel_that_was_not_tuned_says_what_to_do(triton: Path) -> None:
    (triton / "capture/triton.json").write_text(json.dumps(row(candidates=[], tuned=False)))
    async with workbench(triton) as bench:
        await bench.attempts(1)
        await bench.pilot.press("T")
        assert "the program did not autotune this kernel" in bench.told
        assert "num_warps=2" in bench.shows("config")


@pytest.mark.parametrize(
    ("timed", "said"), [(True, "the times are of the run that filled it"), (False, "it timed none of them")]
)
async def test_a_choice_from_a_cache_says_so(timed: bool, said: str, triton: Path) -> None:
    told = row(cached=True)
    for one in told["candidates"] if not timed else ():
        one["times_ms"] = None
    (triton / "capture/triton.json").write_text(json.dumps(told))
    async with workbench(triton, size=(160, 50)) as bench:
        await bench.pilot.press("6")
        await bench.until(lambda: "candidates" in bench.shows("config"))
        assert f"The program had its choice from a cache: {said}." in " ".join(bench.shows("config").split())


def test_a_kernel_that_cannot_be_rebuilt_has_its_reason(triton: Path) -> None:
    found = row(reason="it was compiled of a .ttir file")
    for name in ("module", "function", "constexprs", "options", "declared", "candidates", "modules"):
        del found[name]
    (triton / "capture/triton.json").write_text(json.dumps(found))
    read = configuration.read_configuration(triton)
    assert read is not None
    assert (read.none, read.tried) == ("It cannot be rebuilt: it was compiled of a .ttir file", ())


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50), (40, 12)])
async def test_time_and_difference_are_in_view(triton: Path, tries: Tries, size: tuple[int, int]) -> None:
    tries.go.release(3)
    async with workbench(triton, size=size) as bench:
        await bench.attempts(1)
        await bench.pilot.press("T")
        await shown(bench, "8.200 us")
        width = bench.screen.views.view("config").size.width
        line = next(line for line in bench.shows("config").splitlines() if "8.200 us" in line)
        assert line.index("11.65%") + len("11.65%") <= width
        if size[0] >= 80:
            assert line.index("0.000488") + len("0.000488") <= width
        if size == (80, 24):
            own = ["64", "4", "8.200", "us", "2.000x", "FAIL", "11.65%", "0.000488"]
            assert line.split() == [*own, "3.000", "ms", "4x3x1"]
            view = bench.screen.views.view("config")
            at = bench.shows("config").splitlines().index(line)
            assert at - view.scroll_offset.y < view.size.height


def many(record: dict[str, Any]) -> dict[str, Any]:
    """Eight candidates that differ in four values, and all the options that a backend has."""
    values = [(16 << i % 4, 32 << i % 3, 1 << i % 4, i % 5) for i in range(8)]
    record["candidates"] = [
        {
            **candidate(0, 0, 1.0 + i, chosen=i == 1),
            "constexprs": {"BM": "128", "BN": str(n), "BK": str(k)},
            "options": {"num_warps": str(warps), "num_stages": str(stages)},
        }
        for i, (n, k, warps, stages) in enumerate(values)
    ]
    record["options"] |= {f"option_{i}_of_the_backend": "('ieee', 'tf32')" for i in range(12)}
    return record


async def test_a_low_and_narrow_screen_has_the_candidates_in_view_and_the_rest_below(triton: Path) -> None:
    (triton / "capture/triton.json").write_text(json.dumps(many(row())))
    async with workbench(triton, size=(80, 24)) as bench:
        await bench.attempts(1)
        await bench.pilot.press("6")
        await shown(bench, "pinned")
        view = bench.screen.views.view("config")
        lines = bench.shows("config").splitlines()
        assert max(map(len, lines)) <= view.size.width  # nothing is beside the screen
        heading = next(i for i, line in enumerate(lines) if line.startswith("candidates"))
        await bench.until(lambda: heading + 10 <= view.size.height)  # and its columns, and eight rows
        assert view.scroll_offset.y == 0
        assert any("of_the_backend" in line for line in lines[heading:])
        assert not any("of_the_backend" in line for line in lines[:heading])
        await bench.pilot.press("end")
        await bench.until(lambda: view.scroll_offset.y + view.size.height >= len(lines))
        await bench.pilot.press("1")  # the attempts have their lines again
        await bench.until(lambda: bench.screen.table.size.height == 6)


def test_a_table_is_closer_before_it_takes_two_lines(triton: Path) -> None:
    record = many(row())
    (triton / "capture/triton.json").write_text(json.dumps(record))
    read = configuration.read_configuration(triton)
    assert read is not None
    tried = tuple(
        replace(t, result=replace(t.result, median_ns=20123.0, verdict="IDENTICAL", changed_share=0.1165))
        for t in read.tried
    )
    for width, height, headings, rows in (
        (110, 14, ["BN", "BK", "num_warps", "num_stages", *FIGURES, "in", "program", "programs"], 8),
        (77, 14, ["BN", "BK", "num_warps", "num_stages", *FIGURES], 8),
        (64, 14, ["BN", "BK", "warps", "stages", *FIGURES], 8),
        (77, 40, FIGURES, 16),  # there is room for what the program measured
        (50, 14, FIGURES, 16),
    ):
        made = configuration_text.report(replace(read, tried=tried), width, height)
        lines = ["".join(str(piece[0]) for piece in line) for line in made]
        at = next(i for i, line in enumerate(lines) if line.startswith("candidates"))
        at += not lines[at].endswith("tries them")  # on a narrow pane its heading takes two lines
        end = next(i for i, line in enumerate(lines) if "chosen by" in line)
        assert (lines[at + 1].split(), end - at - 2) == (headings, rows)
        if rows == 8:
            assert max(map(len, lines[at + 1 : end])) <= width


@pytest.mark.skipif(textual_version != DRAWN_WITH, reason=f"pictures were drawn with Textual {DRAWN_WITH}")
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
async def test_the_picture_of_the_pane(
    triton: Path, tries: Tries, tmp_path: Path, size: tuple[int, int]
) -> None:
    iterations(triton)
    (triton / "kernel_variant.py").write_text(VARIANT.replace('"num_warps": 2', '"num_warps": 4'))
    async with workbench(triton, size=size) as bench:
        await bench.until(lambda: bench.screen.model.ready)
        await bench.until(lambda: bench.screen.views.source._coloured is not None)
        bench.screen.table.select("2")
        await bench.pilot.press("T")
        tries.go.release(2)
        await shown(bench, "4.100 us")
        bench.screen.tell("")
        await bench.pilot.pause(0.3)
        svg = bench.app.export_screenshot()
        tries.go.release(2)
    kept = SNAPSHOTS / f"configuration-{size[0]}x{size[1]}.svg"
    if os.environ.get("KERNCAP_UPDATE_SNAPSHOTS"):
        kept.write_text(svg)
    fresh = tmp_path / kept.name
    fresh.write_text(svg)
    assert not differences(svg, kept.read_text()), f"{fresh} differs from {kept}"


def test_pinned_is_read_as_python_and_compared_by_its_values(triton: Path) -> None:
    assert entries(VARIANT) == {
        "grid": "(4, 3, 1)",
        "BM": "32",
        "SCALE": "float('inf')",
        "num_warps": "2",
        "specialized: n": "1",
        "enable_fp_fusion": "True",
    }
    respelt = VARIANT.replace("(4, 3, 1)", "(4,3,1)").replace('"inf"', "'inf'")
    (triton / "kernel_variant.py").write_text(respelt)
    assert pinned_changes(triton) == ((), "")
    (triton / "kernel_variant.py").write_text(VARIANT.replace("(4, 3, 1)", "(2, 3, 1)"))
    assert pinned_changes(triton) == ((Change("grid", "(4, 3, 1)", "(2, 3, 1)"),), "")
    (triton / "kernel_variant.py").unlink()
    assert pinned_changes(triton) == ((), "")
    for text in ("x = 1", "def pinned():\n    return dict(grid=1)", "def pinned():\n    return {**OTHERS}"):
        with pytest.raises(ValueError, match=r"no such function|written out"):
            entries(text)


@pytest.mark.parametrize(
    ("attributes", "named"),
    [
        ({"paths": "{(0,): [['tt.divisibility', 16]], (2, 1): [['tt.divisibility', 16]]}"}, "(2, 1)"),
        ({"paths": "{}"}, ""),
        ({"descriptor": "{'arg_properties': {'tt.divisibility': [0, 1], 'tt.equal_to': [2]}}"}, ""),  # 3.2
    ],
)
def test_pinned_as_it_is_written_is_read(attributes: dict[str, str], named: str) -> None:
    module = {"file": "/m.py", "future": False, "imports": {}, "constants": {}}
    function = {"source": "def f(x, BM):\n    pass", "decorator": "triton.jit", "file": "/m.py", "line": 1}
    module["functions"] = {"f": function}
    record = TritonRecord({**row(), "attributes": attributes, "modules": {"m": module}, "unresolved": {}})
    text = write_variant(record, (4, 3, 1)).texts["kernel_variant.py"]
    found = entries(text)
    assert (found["grid"], found["BM"], found["num_warps"]) == ("(4, 3, 1)", "32", "2")
    assert [name for name in found if name.startswith("attributes")] == (
        ["attributes: (0,)", "attributes: (2, 1)"] if named else []
    )
    assert found["backend_name"] == "'hip'"


def test_a_spoilt_record_is_a_damaged_capture(triton: Path) -> None:
    (triton / "capture/triton.json").write_text("{}")
    with pytest.raises(KerncapError):
        read_pinned(triton)
