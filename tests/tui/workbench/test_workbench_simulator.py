"""The real thing: the demonstration's kernel on the simulated GPU, compiled, replayed and compared."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from workbench_stage import real_workbench

from kerncap.core.errors import KerncapError
from kerncap.core.loop.iterations import list_iterations
from kerncap.demo.edits import HOIST, WRONG
from support.package import APP


@pytest.fixture(scope="module")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """mul_mat_vec_q of the demonstration program, extracted by the command line."""
    where = tmp_path_factory.mktemp("demo")
    environment = {**os.environ, "PYTHONPATH": str(APP), "XDG_CACHE_HOME": str(where / "cache")}
    kerncap = [sys.executable, "-m", "kerncap"]
    demo, out = where / "demo", where / "isolated"
    subprocess.run(
        [*kerncap, "demo", "--build", str(demo), "--device", "sim:gfx942"],
        check=True,
        env=environment,
        capture_output=True,
        timeout=200,
    )
    subprocess.run(
        [
            *[*kerncap, "extract", "mul_mat_vec_q", "-o", str(out), "--source-dir", str(demo)],
            *["--device", "sim:gfx942", "--", str(demo / "build/decode"), "--tokens", "18"],
        ],
        check=True,
        env=environment,
        capture_output=True,
        timeout=200,
    )
    return out


def replayers() -> list[int]:
    """Processes of ours that are replayers."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            stat = (path / "stat").read_text().rpartition(")")[2].split()
            name = (path / "comm").read_text().strip()
        except OSError:
            continue
        if name.startswith("kerncap-replay") and int(stat[1]) == os.getpid() and stat[0] != "Z":
            found.append(int(path.name))
    return found


async def test_the_whole_loop_on_the_simulated_gpu(extracted: Path) -> None:
    clock = [0.0]
    async with real_workbench(extracted, clock=clock) as bench:
        app, pilot = bench.app, bench.pilot
        await bench.attempts(1)
        assert "IDENTICAL" in bench.rows()[0]
        assert "1.000x" in bench.rows()[0]
        assert "simulated" in bench.line("result")

        await pilot.press("E")  # the demonstration's edit
        await bench.attempts(2)
        assert HOIST.new in bench.source.read_text()
        row = bench.screen.model.rows[2]
        assert row.verdict == "IDENTICAL"
        assert row.speedup is not None
        assert row.speedup > 1.02
        assert bench.rows()[1].startswith("★")

        await pilot.press("E")  # and its wrong one
        await bench.attempts(3)
        assert WRONG.new in bench.source.read_text()
        row = bench.screen.model.rows[3]
        assert row.verdict == "FAIL"
        assert bench.screen.model.best
        assert bench.screen.model.best.number == 2
        shown = bench.shows("validation")
        assert "elements differ" in shown
        assert "expected" in shown
        assert "▀" in shown
        region = bench.screen.shown.document["validation"]["regions"][0]
        assert region["mismatches"] == len(region["elements"]) == 256
        assert region["extent"] == [0, 1024]
        assert sum(region["error_histogram"].values()) == region["differing"] == 256

        # Ended from outside while nothing is asked of it: the next step starts it again.
        (replayer,) = replayers()
        os.kill(replayer, signal.SIGKILL)
        await pilot.press("p")
        await bench.until(lambda: replayers() not in ([], [replayer]), "another replayer")
        assert "outside" not in bench.told
        assert bench.screen.model.rows[3].verdict == "FAIL"
        await bench.until(lambda: not bench.screen.busy)

        bench.screen.table.select("2")
        await pilot.pause()
        await pilot.press("u")
        await bench.attempts(4)
        assert bench.screen.model.rows[4].verdict == "IDENTICAL"
        with pytest.raises(KerncapError):
            WRONG.undo(bench.source)  # it is gone from the source

        await pilot.press("V")
        await bench.until(lambda: bench.screen.model.rows[4].mode == "strict", "the strict comparison")
        assert bench.screen.model.rows[4].verdict == "IDENTICAL"
        await pilot.press("P")
        await bench.until(lambda: "Wrote variant.patch" in bench.told)
        assert b"use_gate" in (extracted / "variant.patch").read_bytes()

        await pilot.press("escape")
        await bench.until(lambda: len(app.screen_stack) == 1)
        await bench.until(lambda: not replayers(), "the end of the replayer", 10)


async def test_the_reproducer_goes_while_it_is_open_and_comes_back(extracted: Path) -> None:
    async with real_workbench(extracted) as bench:
        app, pilot = bench.app, bench.pilot
        await bench.until(lambda: bench.screen.model.ready and not bench.screen.busy, "the loop")
        known = len(list_iterations(extracted))
        aside = extracted.with_name("aside")
        extracted.rename(aside)
        for key in ("b", "p", "v", "P", "u"):
            await pilot.press(key)
            await bench.until(lambda: bench.told and not bench.screen.busy, f"a sentence after {key}")
            assert "Traceback" not in bench.told
        assert "loop ended: " not in bench.told
        aside.rename(extracted)
        await pilot.press("b")
        await bench.until(lambda: len(list_iterations(extracted)) > known, "another attempt")
        await bench.until(lambda: not bench.screen.busy)
        assert bench.screen.model.rows[bench.screen.model.numbers[-1]].verdict in ("IDENTICAL", "FAIL")
        app.close_down()


async def test_leaving_ends_the_replayer(extracted: Path) -> None:
    async with real_workbench(extracted, size=(80, 24), below=False) as bench:
        app = bench.app
        await bench.until(lambda: bench.screen.model.ready, "the loop")
        assert replayers()
        app.close_down()  # as quit, HUP and TERM do
        await bench.until(lambda: not replayers(), "the end of the replayer", 5)
