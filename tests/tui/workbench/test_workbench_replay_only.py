"""A reproducer without source opens too: its captured kernel is timed and compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hip_tree import Tree
from project import program, reproducer
from textual.widgets import Static
from workbench_stage import FakeBench, Result, failing, real_workbench, workbench

from kerncap.core.capture import manifest
from kerncap.core.errors import DeviceError
from kerncap.tui.screens.help import HelpScreen
from kerncap.tui.widgets.bars import KeyBar
from kerncap.tui.workbench.actions import ACTIONS
from support.build import build_program
from support.package import APP

REASON = "No unit that compiles here defines scale."


@pytest.fixture
def bare(tree: Tree, tmp_path: Path) -> Path:
    """A reproducer whose source was not looked for."""
    out = tmp_path / "isolated"
    info = reproducer(out, program(tree), tree.root, language="none")
    document = json.loads((out / "capture" / manifest.NAME).read_text())
    source = {**info.to_json(), "reason": REASON}
    manifest.write(out / "capture", {**document, "source": source, "state": manifest.COMPLETE})
    return out


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_it_says_why_and_replays(bare: Path, size: tuple[int, int]) -> None:
    async with workbench(bare, FakeBench(Result(7180.0), Result(7200.0)), size=size) as bench:
        await bench.attempts(1)
        assert bench.told.startswith(
            f"Replay only, there is no source to edit: {REASON} p times the captured"
        )
        assert REASON in " ".join(bench.shows("source").split())
        assert "replay only" in bench.line("kernel-line")
        assert "attempt 1 IDENTICAL" in bench.line("result")
        await bench.pilot.press("p")
        await bench.attempts(2)
        await bench.pilot.press("V")
        await bench.until(lambda: "IDENTICAL strict" in bench.rows()[1], "the strict comparison")
        await bench.pilot.press("t", *"rtol 1e-6", "enter")
        await bench.until(lambda: bench.fake.modes[-1] == "default" and not bench.screen.busy)
        for key in ("b", "e", "i", "E", "u", "c", "d", "f", "W", "P"):
            bench.screen.tell("")
            await bench.pilot.press(key)
            assert "Replay only" in bench.told, key
        assert len(bench.rows()) == 2
        assert not (bare / "iterations").exists()
        for key in "12345":
            await bench.pilot.press(key)
            await bench.pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_keys_are_those_of_use(bare: Path, size: tuple[int, int]) -> None:
    async with workbench(bare, FakeBench(Result(7180.0)), size=size) as bench:
        await bench.attempts(1)
        bar = str(bench.screen.query_one(KeyBar).render())
        assert bar.split()[:8] == ["p", "replay", "v", "validate", "V", "strict", "t", "tolerance"]
        for word in ("build", "edit", "revert", "compare", "file", "patch", "watch"):
            assert word not in bar
        assert "back" in bar
        assert "quit" in bar
        await bench.pilot.press("question_mark")
        await bench.until(lambda: isinstance(bench.app.screen, HelpScreen))
        text = "".join(str(part.render()) for part in bench.app.screen.query(Static))
        assert "Replay again" in text
        assert "Open the editor" not in text
        assert "Write a patch  " not in text


async def test_p_starts_a_loop_that_has_ended(bare: Path) -> None:
    fake = FakeBench(Result(7180.0))
    fake.prepare_error = DeviceError("there is no GPU")
    async with workbench(bare, fake) as bench:
        await bench.until(lambda: "p starts again" in bench.told, bench.told)
        fake.prepare_error = None
        await bench.pilot.press("p")
        await bench.attempts(1)


async def test_a_kernel_with_source_has_its_keys(out: Path) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        bar = str(bench.screen.query_one(KeyBar).render())
        assert bar.split()[:4] == ["b", "build", "e", "edit"]
        names = [action.name for action in bench.screen.fitting(ACTIONS)]
        assert "patch" in names
        assert "candidates" not in names  # it is none of Triton's


async def test_its_trouble_is_a_sentence_and_esc_gives_up(bare: Path) -> None:
    gone = DeviceError("kerncap-replay was ended from outside (SIGKILL) during 'run'.")
    fake = FakeBench(Result(error=gone), Result(1000, "FAIL", failing()), Result())
    async with workbench(bare, fake, below=True) as bench:
        await bench.attempts(1)
        assert "replay: kerncap-replay was ended from outside" in bench.shows("validation")
        await bench.pilot.press("p")
        await bench.attempts(2)
        assert bench.rows()[1].rstrip().endswith("FAIL")
        fake.hold.clear()
        await bench.pilot.press("p")
        await bench.until(lambda: fake.times == 3)
        await bench.pilot.press("escape")
        await bench.until(lambda: not bench.screen.busy)
        assert "Attempt 3 was given up." in bench.told
        await bench.pilot.press("escape")
        await bench.until(lambda: len(bench.app.screen_stack) == 1)
        await bench.until(lambda: fake.closed, "the end of the bench")


async def test_on_the_simulated_gpu(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["extract", "advance", "-o", str(out), "--language", "none", "--device", "sim:gfx942", "--"]
    subprocess.run(
        [sys.executable, "-m", "kerncap", *words, str(build_program("in_place").executable)],
        env={**os.environ, "PYTHONPATH": str(APP)},
        check=True,
        capture_output=True,
        timeout=200,
    )
    async with real_workbench(out) as bench:
        app, pilot = bench.app, bench.pilot
        await bench.attempts(1)
        assert "attempt 1 IDENTICAL" in bench.line("result")
        assert "1.000x SAME" in bench.line("result")
        await pilot.press("v")
        await bench.until(lambda: not bench.screen.busy)
        app.close_down()
