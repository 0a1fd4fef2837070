"""What goes wrong is a sentence in place; the screen lives on and nothing is lost."""

from __future__ import annotations

import json
import mmap
import shutil
import threading
import time
from pathlib import Path

import pytest
from workbench_stage import FakeBench, Result, record, workbench

from kerncap.core.errors import DeviceError, UsageError
from kerncap.core.loop.history import present_sources
from kerncap.core.loop.iterations import list_iterations
from kerncap.core.replay.replayer import KernelFault
from kerncap.tui.settings import Settings


async def test_a_directory_that_is_no_reproducer(tmp_path: Path) -> None:
    async with workbench(tmp_path / "gone") as bench:
        await bench.until(lambda: "is no directory" in bench.told)
        assert "b starts again" in bench.told
        await bench.pilot.press("p", "v", "u", "c", "i", "e", "n", "d", "f", "r", "right_square_bracket")
        assert bench.app.is_running


async def test_the_capture_is_removed_and_comes_back(out: Path) -> None:
    shutil.move(out / "capture", out.parent / "capture")
    async with workbench(out) as bench:
        await bench.until(lambda: "b starts again" in bench.told)
        assert str(out) in bench.told
        shutil.move(out.parent / "capture", out / "capture")
        await bench.pilot.press("b")
        await bench.attempts(1)


async def test_the_directory_goes_while_it_is_open(out: Path) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        shutil.move(out, out.parent / "elsewhere")
        await bench.pilot.press("b")
        await bench.until(lambda: str(out) in bench.told, "a sentence")
        for key in ("P", "u", "p"):
            await bench.pilot.press(key)
            await bench.pilot.pause(0.1)
        assert bench.app.is_running
        assert "IDENTICAL" in bench.rows()[0]


async def test_no_compiler(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNCAP_CLANG", "/nowhere/clang")
    async with workbench(out) as bench:
        await bench.attempts(1)
        assert "/nowhere/clang" in bench.shows("errors")
        assert "does not build" in bench.rows()[0]
        monkeypatch.delenv("KERNCAP_CLANG")
        await bench.pilot.press("b")
        await bench.attempts(2)
        assert "IDENTICAL" in bench.rows()[1]


async def test_the_replayer_is_killed_from_outside(out: Path) -> None:
    gone = DeviceError("kerncap-replay was ended from outside (SIGKILL) during 'run'.")
    async with workbench(out, FakeBench(Result(error=gone), Result())) as bench:
        await bench.attempts(1)
        assert "error" in bench.rows()[0]
        assert "replay: kerncap-replay was ended from outside" in bench.shows("validation")
        assert bench.told == ""  # once is enough
        await bench.pilot.press("p")
        await bench.until(lambda: bench.fake.times == 2 and not bench.screen.busy)
        await bench.until(lambda: bench.told == "", "the sentence to go")
        assert "IDENTICAL" in bench.rows()[0]
        assert bench.fake.modes == ["default"]


async def test_a_fault_of_the_variant_is_its_verdict(out: Path) -> None:
    fault = KernelFault("write to memory that is not allocated at 0x10", 0x10)
    async with workbench(out, FakeBench(Result(error=fault))) as bench:
        await bench.attempts(1)
        assert "FAIL" in bench.rows()[0]
        assert "not allocated at 0x10" in bench.shows("validation")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_fault_is_said_once_and_not_of_the_next_attempt(out: Path, size: tuple[int, int]) -> None:
    fault = KernelFault("write to memory that is not allocated at 0x10", 0x10)
    async with workbench(
        out, FakeBench(Result(), Result(error=fault), Result(error=fault)), size=size
    ) as bench:

        def screen() -> str:
            strips = bench.app.screen._compositor.render_strips()
            return "\n".join(strip.text for strip in strips)

        await bench.attempts(1)
        bench.edit("i < n", "i + 1 <= n")
        await bench.attempts(2)
        assert screen().count("not allocated at 0x10") == 1
        bench.fake.hold.clear()
        bench.edit("i + 1 <= n", "i + 2 <= n + 1")
        await bench.until(lambda: bench.fake.times == 3, "the third replay")
        assert "not allocated" not in screen()
        await bench.pilot.press("4")  # who asks for it gets it, with its number
        assert "of attempt 2; attempt 3 is under way" in bench.shows("validation")
        bench.fake.hold.set()
        await bench.attempts(3)
        assert screen().count("not allocated at 0x10") == 1
        assert "under way" not in bench.shows("validation")


async def test_the_disk_is_full(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        with monkeypatch.context() as patch:

            def full(*_: object) -> None:
                raise UsageError(f"{out}/iterations cannot be written: No space left on device.")

            patch.setattr("kerncap.core.loop.iterations.Keeper.open", full)
            await bench.pilot.press("b")
            await bench.until(lambda: "No space left" in bench.told)
        assert not bench.screen.busy
        assert "attempt 1 IDENTICAL" in bench.line("result")
        await bench.pilot.press("b")
        await bench.attempts(2)


async def test_a_storm_of_saves_ends_with_the_last_one(out: Path) -> None:
    async with workbench(out) as bench:
        await bench.attempts(1)
        text = bench.source.read_text()

        def storm() -> None:
            for i in range(50):
                bench.source.write_text(text.replace("i < n", f"i + {i} < n + {i}"))
                time.sleep(0.01)

        thread = threading.Thread(target=storm)
        thread.start()
        await bench.until(lambda: not thread.is_alive())
        await bench.until(
            lambda: (
                not bench.screen.busy
                and list_iterations(out)
                and b"i + 49 < n + 49"
                in (list_iterations(out)[-1].directory / "source/kernel_variant.cpp").read_bytes()
                and list_iterations(out)[-1].outcome == "passed"
                and bench.screen.model.numbers[-1] == list_iterations(out)[-1].number
            ),
            "the last save's verdict",
        )
        assert len(bench.rows()) < 40
        assert "i + 49 < n + 49" in bench.shows("source")


async def test_saves_of_which_no_notice_comes_are_seen_by_polling(out: Path) -> None:
    """As from another machine over NFS: a write through a mapping, which inotify does not report."""
    async with workbench(out, settings=Settings(poll_ms=40)) as bench:
        await bench.attempts(1)
        assert "watching every 40 ms" in bench.line("kernel-line")
        with bench.source.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            at = mapped.find(b"i < n")
            mapped[at : at + 5] = b"n > i"
            mapped.flush()
            await bench.attempts(2)
        assert "n > i" in bench.shows("source")
        assert "IDENTICAL" in bench.rows()[1]


async def test_esc_gives_up_a_variant_that_never_ends(out: Path) -> None:
    async with workbench(out, below=True) as bench:
        await bench.attempts(1)
        bench.fake.hold.clear()
        await bench.pilot.press("b")
        await bench.until(lambda: bench.fake.times == 2)
        await bench.pilot.press("escape")
        await bench.until(lambda: not bench.screen.busy)
        assert "Attempt 2 was given up." in bench.told
        assert "given up" in bench.rows()[1]
        assert bench.app.screen is bench.screen  # the next esc goes back
        await bench.pilot.press("escape")
        await bench.until(lambda: len(bench.app.screen_stack) == 1)


async def test_the_loop_does_not_start_and_starts_later(out: Path) -> None:
    fake = FakeBench()
    fake.prepare_error = DeviceError("no GPU of gfx942 here, and no simulator of it is installed")
    async with workbench(out, fake) as bench:
        await bench.until(lambda: "no GPU of gfx942" in bench.told)
        assert "scale(T* p" in bench.shows("source")
        await bench.pilot.press("p")
        assert "b builds" in bench.told or "b starts" in bench.told
        fake.prepare_error = None
        await bench.pilot.press("b")
        await bench.attempts(1)


async def test_damaged_records_are_said_and_the_rest_is_there(out: Path) -> None:
    async with workbench(out) as bench:
        for n in range(1, 4):
            await bench.attempts(n)
            await bench.pilot.press("b")
        await bench.attempts(4)
    (out / "iterations/002/iteration.json").write_text("[]")
    async with workbench(out) as bench:
        await bench.until(lambda: "002/iteration.json" in bench.told)
        assert bench.screen.model.numbers == [1, 3, 4]


def kept(out: Path, *outcomes: str) -> None:
    """So many attempts on disk, each with the source as it stands."""
    for number, outcome in enumerate(outcomes, 1):
        folder = out / f"iterations/{number:03d}"
        for name, content in present_sources(out).items():
            path = folder / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        built = outcome != "build-failed"
        more = {} if built else {"timing": {}, "validation": {}}
        (folder / "iteration.json").write_text(json.dumps(record(number, 7180.0, outcome, **more)))


@pytest.mark.parametrize("size", [(80, 24), (60, 24), (120, 40)])
async def test_the_selected_attempt_is_in_view_with_its_whole_verdict(
    out: Path, size: tuple[int, int]
) -> None:
    kept(out, *["passed"] * 29, "build-failed")
    async with workbench(out, size=size) as bench:
        await bench.until(lambda: bench.screen.model.ready)

        def selected() -> list[str]:
            table = bench.screen.table
            lines = [strip.text.strip() for strip in bench.app.screen._compositor.render_strips()]
            rows = [line for line in lines if line.lstrip("★ ").startswith(f"{table.number} ")]
            return [row for row in rows if "attempts of" not in row]

        assert bench.screen.table.number == 30
        assert len(selected()) == 1
        assert "does not build" in selected()[0]
        bench.edit("i < n", "i + 1 <= n")
        await bench.attempts(31)
        assert bench.screen.table.number == 31
        assert "IDENTICAL" in selected()[0]
        bench.screen.table.select("3")
        await bench.pilot.pause()
        await bench.pilot.press("u")
        await bench.attempts(32)
        assert bench.screen.table.number == 32
        assert len(selected()) == 1


@pytest.mark.parametrize("size", [(40, 10), (30, 6), (80, 24), (200, 50)])
async def test_every_size_shows_something(out: Path, size: tuple[int, int]) -> None:
    async with workbench(out, size=size) as bench:
        await bench.attempts(1)
        for key in "12345":
            await bench.pilot.press(key)
            await bench.pilot.pause()
        assert bench.app.is_running
        assert "attempt 1" in bench.line("result")
