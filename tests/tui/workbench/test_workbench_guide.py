"""The guided line and the example edits that it leads to."""

from __future__ import annotations

from pathlib import Path

from workbench_stage import FakeBench, Result, failing, workbench

import kerncap.demo
from kerncap.demo.edits import HOIST, KERNEL, WRONG
from kerncap.tui.widgets.bars import StatusLine
from kerncap.tui.workbench.example import make_edit

TREE = Path(kerncap.demo.__file__).parent / "tree"


def test_the_edits_follow_each_other_in_the_demonstrations_kernel(tmp_path: Path) -> None:
    (source,) = (p for p in (TREE / "src/kernels").rglob("*") if p.is_file() and HOIST.old in p.read_text())
    assert KERNEL in source.read_text()
    copy = tmp_path / "kernel_variant.hip"
    copy.write_bytes(source.read_bytes())
    other = tmp_path / "other.h"
    other.write_text("// nothing of the kernel")
    made = []
    for _ in range(4):
        edit = make_edit([other, copy])
        assert edit is not None
        assert edit[0] == copy
        made.append(copy.read_text())
    hoisted = source.read_text().replace(HOIST.old, HOIST.new)
    wrong = hoisted.replace(WRONG.old, WRONG.new)
    assert made == [hoisted, wrong, hoisted, wrong]


async def test_E_says_where_it_has_nothing_to_edit(out: Path) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        before = bench.source.read_bytes()
        await bench.pilot.press("E")
        await bench.until(lambda: "whose kernel this is not" in bench.told)
        assert bench.source.read_bytes() == before


async def test_the_hint_follows_what_happened(out: Path) -> None:
    fake = FakeBench(Result(1000), Result(800), Result(700, "FAIL", failing()), Result(800))
    async with workbench(out, fake, guided=True) as bench:

        def hint() -> str:
            return str(bench.screen.query_one(StatusLine).render())

        await bench.attempts(1)
        await bench.until(lambda: "Press E for the demonstration's edit" in hint())
        bench.edit("i < n", "i + 1 <= n")
        await bench.attempts(2)
        await bench.until(lambda: "Right, and kept. E makes a wrong edit" in hint())
        bench.edit("i + 1 <= n", "i + 2 <= n")
        await bench.attempts(3)
        await bench.until(lambda: "E takes the wrong edit back" in hint())
        bench.edit("i + 2 <= n", "i + 2 <= nix")
        await bench.attempts(4)
        await bench.until(lambda: "Pane 2 has the messages" in hint())


async def test_the_hint_is_about_the_selected_attempt_and_what_is_under_way(out: Path) -> None:
    fake = FakeBench(Result(1000), Result(800), Result(700, "FAIL", failing()), Result(800))
    async with workbench(out, fake, guided=True) as bench:

        def line() -> str:
            return str(bench.screen.query_one(StatusLine).render())

        await bench.attempts(1)
        bench.fake.hold.clear()
        bench.edit("i < n", "i + 1 <= n")
        await bench.until(lambda: "Attempt 2 is compiled, timed and compared" in line())
        bench.screen.tell("Edited kernel_variant.cpp: something.")
        assert line() == "Edited kernel_variant.cpp: something.\n" + (
            "Attempt 2 is compiled, timed and compared: wait for its verdict."
        )
        bench.fake.hold.set()
        await bench.attempts(2)
        bench.edit("i + 1 <= n", "i + 2 <= n")
        await bench.attempts(3)
        await bench.until(lambda: "Wrong, so its time does not count" in line())
        bench.screen.table.focus()
        await bench.pilot.press("up")
        await bench.until(lambda: "Attempt 2 is selected" in line())
        assert "Wrong" not in line()
        await bench.pilot.press("down")
        await bench.until(lambda: "Wrong" in line())
        await bench.pilot.press("question_mark")
        assert "Wrong" not in line()  # it is about the screen below
        await bench.pilot.press("escape")
        await bench.until(lambda: "Wrong" in line())
