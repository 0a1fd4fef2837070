"""The loop on the screen: attempts, verdicts, panes and keys, with a scripted bench."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hip_tree import Tree
from workbench_stage import FakeBench, Result, failing, workbench

from kerncap.core.loop.iterations import list_iterations
from kerncap.core.loop.judging import Judging, remembered


async def test_the_source_as_it_stands_is_the_first_attempt(out: Path) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        (row,) = bench.rows()
        assert row.split()[:2] == ["★", "1"]
        assert "IDENTICAL" in row
        assert "1.000 ±0.00 us" in row
        assert "attempt 1 IDENTICAL" in bench.line("result")
        assert "1.000x SAME" in bench.line("result")
        assert "void ns::f[abi:cxx11](int)[with T = float]" in bench.line("kernel-line")
        assert "watching on" in bench.line("kernel-line")
        assert "__launch_bounds__(256) scale" in bench.shows("source")


async def test_a_save_gives_a_row_and_the_best_valid_one_is_marked(out: Path) -> None:
    fake = FakeBench(Result(1000), Result(800), Result(900), Result(500, "FAIL", failing()))
    async with workbench(out, fake) as bench:
        await bench.attempts(1)
        bench.edit("i < n", "i + 1 <= n")
        await bench.attempts(2)
        bench.edit("i + 1 <= n", "i + 2 <= n + 1")
        await bench.attempts(3)
        rows = bench.rows()
        assert [r[0] for r in rows] == [" ", "★", " "]
        assert "1.250x" in rows[1]
        assert "+1 -1" in rows[1]
        assert "0.889x" in rows[2]  # 800 by 900
        bench.edit("i + 2", "i + 3")
        await bench.attempts(4)
        rows = bench.rows()
        assert [r[0] for r in rows] == [" ", "★", " ", " "]  # faster, but wrong
        assert rows[3].rstrip().endswith("FAIL")
        assert "attempt 4 FAIL" in bench.line("result")
        assert "its time does not count" in bench.line("result")
        assert "2.000x" not in bench.line("result")
        assert rows[3].split()[-3:] == ["-", "-", "FAIL"]  # neither against the captured nor best
        await bench.pilot.press("3")
        await bench.pilot.pause()
        assert "its time does not count: FAIL" in bench.shows("timing")
        assert "2.000x" not in bench.shows("timing")
        assert "FASTER" not in bench.shows("timing")


async def test_a_failed_validation_brings_up_what_differs_and_where(out: Path) -> None:
    fake = FakeBench(Result(1000, "FAIL", failing()), Result(1000))
    async with workbench(out, fake) as bench:
        await bench.attempts(1)
        text = bench.shows("validation")
        assert text.startswith("FAIL  1.3 KB compared")
        assert "max abs 39.5 · max rel 19.8" in text
        assert "1 new NaNs" in text
        assert "▀" in text  # the map
        assert "        0                2              2.5" in text
        assert "and 32 more below" in text
        assert "rel is |actual - expected| / |expected|" in text
        assert "1e-1" in text
        await bench.pilot.press("right_square_bracket")
        await bench.pilot.pause()
        assert "▶      9" in bench.shows("validation")
        bench.edit("i < n", "i + 1 <= n")
        await bench.attempts(2)
        assert not bench.screen.views.view("validation").display  # it is over


async def test_compiler_errors_come_up_first_and_n_goes_through_them(out: Path) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        bench.edit("i < n) p[i]", "\n i < nix) q[/b]")
        await bench.attempts(2)
        text = bench.shows("errors")
        assert "▶ error kernel_variant.cpp:4" in text
        assert "use of undeclared identifier 'nix'" in text
        marked = [line for line in bench.shows("source").splitlines() if line.startswith("▶")]
        assert len(marked) == 1
        assert "q[/b]" in marked[0]
        assert "◀ use of undeclared identifier 'nix'" in marked[0]
        assert bench.screen.views.source.line == 4
        assert "does not build" in bench.rows()[1]
        await bench.pilot.press("n")
        await bench.pilot.pause()
        assert bench.screen.shown.current == 1
        await bench.pilot.press("r")
        await bench.pilot.pause()
        assert "errors generated" in bench.shows("errors")
        bench.edit("i < nix) q[/b]", "i < n) p[i]")
        await bench.attempts(3)
        assert not bench.screen.views.view("errors").display
        assert "▶" not in bench.shows("source")


async def test_while_it_builds_the_last_result_stays_dimmed(out: Path) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        bench.fake.hold.clear()
        bench.edit("i < n", "i + 1 <= n")
        await bench.until(lambda: bench.fake.times == 2, "the second replay")
        await bench.until(lambda: bench.screen.model.attempt.step == "replay")  # type: ignore[union-attr]
        bench.clock[0] += 7.3
        bench.screen._tick()
        await bench.pilot.pause()
        assert "attempt 1 IDENTICAL" in bench.line("result")
        assert bench.screen.query_one("#result").has_class("-stale")
        assert bench.screen.views.has_class("-stale")
        assert "2: compile " in bench.line("tabs")
        assert "replay 7.3 s · esc" in bench.line("tabs")
        bench.fake.hold.set()
        await bench.attempts(2)
        assert not bench.screen.query_one("#result").has_class("-stale")


async def test_p_v_and_V_do_one_step_again(out: Path) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        await bench.pilot.press("p")
        await bench.until(lambda: bench.fake.times == 2 and not bench.screen.busy, "a second replay")
        await bench.pilot.press("V")
        await bench.until(lambda: bench.fake.modes == ["default", "strict"] and not bench.screen.busy)
        await bench.until(lambda: "IDENTICAL strict" in bench.rows()[0])
        await bench.pilot.press("v")
        await bench.until(lambda: bench.fake.modes[-1] == "default" and not bench.screen.busy)
        assert len(bench.rows()) == 1
        assert len(list_iterations(out)) == 1


async def test_watching_off_then_b(out: Path) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        await bench.pilot.press("W")
        assert "watching off" in bench.line("kernel-line")
        bench.edit("i < n", "i + 1 <= n")
        await bench.pilot.pause(0.5)
        assert len(bench.rows()) == 1
        await bench.pilot.press("b")
        await bench.attempts(2)
        await bench.pilot.press("W")
        bench.edit("i + 1 <= n", "i < n")
        await bench.attempts(3)


async def test_u_puts_an_attempts_source_back(out: Path) -> None:
    async with workbench(out, FakeBench(Result(1000), Result(800))) as bench:
        await bench.attempts(1)
        original = bench.source.read_bytes()
        bench.edit("i < n", "i + 1 <= n")
        await bench.attempts(2)
        bench.screen.table.select("1")
        await bench.pilot.pause()
        await bench.pilot.press("u")
        await bench.attempts(3)
        assert bench.source.read_bytes() == original
        assert "The source is that of attempt 1 again." in bench.told
        assert "i < n" in bench.shows("source")
        assert "=" in bench.rows()[2]


async def test_c_compares_two_attempts(out: Path) -> None:
    async with workbench(out, FakeBench(Result(1000), Result(800))) as bench:
        await bench.attempts(1)
        bench.edit("i < n", "i + 1 <= n")
        await bench.attempts(2)
        bench.screen.table.select("1")
        await bench.pilot.pause()
        await bench.pilot.press("c")
        assert bench.rows()[0].startswith("c")
        bench.screen.table.select("2")
        await bench.pilot.pause()
        await bench.pilot.press("c")
        await bench.until(lambda: bench.screen.shown.sides is not None, "the comparison")
        text = bench.shows("diff")
        assert "attempt 2 takes 0.8" in text
        assert "of the time of attempt 1" in text
        assert "+ " in text
        assert "i + 1 <= n" in text
        await bench.pilot.press("escape")
        await bench.until(lambda: "the captured source to attempt 2" in bench.shows("diff"))
        await bench.pilot.press("d")
        await bench.until(lambda: "attempt 1 to attempt 2" in bench.shows("diff"))


async def test_c_leads_to_the_other_attempt_from_any_pane(out: Path) -> None:
    async with workbench(out, FakeBench(Result(1000), Result(800)), size=(80, 24)) as bench:
        await bench.attempts(1)
        bench.edit("i < n", "i + 1 <= n")
        await bench.attempts(2)
        await bench.pilot.press("5", "c")
        assert "Attempt 2 is one of two: ↑ ↓ to the other" in bench.told
        await bench.pilot.press("c")
        assert "Attempt 2 is not marked any more" in bench.told
        assert not any(row.startswith("c") for row in bench.rows())
        await bench.pilot.press("5", "c", "up", "c")
        await bench.until(lambda: bench.screen.shown.sides is not None, "the comparison")
        assert "of the time of attempt 2" in bench.shows("diff")


async def test_c_gives_a_wrong_attempt_no_speed(out: Path) -> None:
    async with workbench(out, FakeBench(Result(1000), Result(500, "FAIL", failing()))) as bench:
        await bench.attempts(1)
        bench.edit("i < n", "i + 1 <= n")
        await bench.attempts(2)
        bench.screen.table.select("1")
        await bench.pilot.pause()
        await bench.pilot.press("c")
        bench.screen.table.select("2")
        await bench.pilot.pause()
        await bench.pilot.press("c")
        await bench.until(lambda: bench.screen.shown.sides is not None, "the comparison")
        text = bench.shows("diff")
        assert "attempt 2 is FAIL: only right results have a speedup." in text
        assert "takes" not in text
        speedup = next(line for line in text.splitlines() if line.split()[:1] == ["speedup"])
        assert speedup.split() == ["speedup", "1.000x", "-"]
    record = list_iterations(out)[-1].document
    assert record["timing"]["speedup"] is None
    assert record["timing"]["speed"] is None


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
async def test_P_writes_a_patch_that_git_applies(out: Path, tree: Tree) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        await bench.pilot.press("P")
        await bench.until(lambda: "Nothing was edited" in bench.told)
        bench.edit("i < n", "i + 1 <= n")
        await bench.attempts(2)
        await bench.pilot.press("P")
        await bench.until(lambda: "Wrote variant.patch" in bench.told)
        words = bench.told.split(": ")[-1]
        assert words.startswith("git -C")
        assert shlex.split(words)[-1] == str(out / "variant.patch")
    for arguments in (["init", "-q"], ["apply", str(out / "variant.patch")]):
        subprocess.run(["git", *arguments], cwd=tree.root, check=True, timeout=60)
    assert "i + 1 <= n" in (tree.root / "src/k.hip").read_text()


async def test_a_wrong_attempt_has_a_median_and_no_speedup(out: Path) -> None:
    async with workbench(out, FakeBench(Result(1000), Result(400, "FAIL", failing()))) as bench:
        await bench.attempts(1)
        bench.edit("i < n", "i + 1 <= n")
        await bench.attempts(2)
        figures = [(text.strip(), style) for text, style in bench.screen.table.row(1)]
        titles = ["", *(column.title for column in bench.screen.table._columns())]
        shown = dict(zip(titles, figures, strict=False))
        assert shown["median"] == ("400 ±2 ns", "dim")
        assert shown["vs captured"] == shown["vs best"] == ("-", "dim")
        assert figures[-1] == ("FAIL", "bad")


async def test_a_session_is_resumed_with_its_attempts(out: Path) -> None:
    async with workbench(out, FakeBench(Result(1000), Result(800))) as bench:
        await bench.attempts(1)
        bench.edit("i < n", "i + 1 <= n")
        await bench.attempts(2)
        before = bench.rows()
    fake = FakeBench()
    async with workbench(out, fake) as bench:
        await bench.until(lambda: bench.screen.model.ready)
        assert bench.rows() == before
        assert "2 attempts of earlier sessions" in bench.told
        assert fake.times == 0  # the source has been tried
        assert bench.screen.seen() == {"workbench": str(out)}
        bench.edit("i + 1 <= n", "i + 2 <= n + 1")
        await bench.attempts(3)


async def test_esc_goes_back_and_never_quits(out: Path) -> None:
    async with workbench(out, below=True) as bench:
        await bench.attempts(1)
        screen = bench.screen
        await bench.pilot.press("escape")
        await bench.until(lambda: screen not in bench.app.screen_stack)
        await bench.until(lambda: bench.fake.closed, "the end of the bench")
        await bench.pilot.press("escape")
        assert bench.app.is_running
    async with workbench(out) as bench:  # the only screen: nothing to go back to
        await bench.pilot.press("escape", "escape")
        assert bench.app.is_running


async def test_t_sets_a_tolerance_that_is_remembered_and_shown(out: Path) -> None:
    judged = {"judging": {"atol": 0.0, "rtol": 1e-6, "ulp": 0, "dtypes": {}}}
    fake = FakeBench(Result(1000, "FAIL", failing()))
    async with workbench(out, fake) as bench:
        await bench.attempts(1)
        await bench.pilot.press("t", *"rtol much")
        await bench.pilot.press("enter")
        assert "much is no number for rtol" in str(bench.app.screen.query_one("#ask-problem").render())  # type: ignore[attr-defined]
        assert not (out / "judging.json").exists()
        await bench.pilot.press(*["backspace"] * 4)
        fake._now = Result(1000, "WITHIN_TOLERANCE", judged)
        await bench.pilot.press(*"1e-6", "enter")
        await bench.until(lambda: len(fake.modes) == 2 and not bench.screen.busy, "the comparison again")
        assert remembered(out) == Judging(rtol=1e-6)
        assert "attempt 1 WITHIN_TOLERANCE (rtol 1e-06)" in bench.line("result")
        assert "rtol 1e-06" in bench.line("kernel-line")
        await bench.pilot.press("4")
        await bench.pilot.pause()
        assert bench.shows("validation").startswith("WITHIN_TOLERANCE  rtol 1e-06")
    async with workbench(out, fake) as bench:
        await bench.until(lambda: bench.screen.model.ready)
        assert "rtol 1e-06" in bench.line("kernel-line")
        await bench.pilot.press("t", *["backspace"] * 20, *"3000=f32", "enter")
        assert "3000" in str(bench.app.screen.query_one("#ask-problem").render())  # type: ignore[attr-defined]
        await bench.pilot.press(*["backspace"] * 20, "enter")
        await bench.until(lambda: len(fake.modes) == 3 and not bench.screen.busy)
        assert not (out / "judging.json").exists()
