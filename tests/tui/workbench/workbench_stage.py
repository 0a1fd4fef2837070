"""The workbench under test: a bench that the test scripts, and a clock that it turns."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.screen import Screen

from kerncap.core.errors import KerncapError
from kerncap.core.loop.events import Timing, Validation
from kerncap.core.loop.iterations import SCHEMA
from kerncap.tui.app import KerncapApp
from kerncap.tui.settings import Remembered, Settings
from kerncap.tui.widgets.bars import StatusLine
from kerncap.tui.workbench.screen import WorkbenchScreen

CSS = str(Path(__import__("kerncap.tui.app", fromlist=["x"]).__file__).with_name("app.tcss"))


@dataclass
class Result:
    """What one attempt is to give."""

    median_ns: float = 1000.0
    verdict: str = "IDENTICAL"
    document: dict[str, Any] = field(default_factory=dict)
    error: KerncapError | None = None


class FakeBench:
    """Gives the scripted results in turn; the last one for ever."""

    def __init__(self, *script: Result) -> None:
        self.script = list(script) or [Result()]
        self.hold = threading.Event()
        self.hold.set()
        self.interrupted = threading.Event()
        self.closed = False
        self.modes: list[str] = []
        self.times = 0
        self.prepare_error: KerncapError | None = None
        self._now = self.script[0]

    def prepare(self) -> None:
        if self.prepare_error is not None:
            raise self.prepare_error

    def time(self, _: Path) -> Timing:
        self.times += 1
        self._now = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        deadline = time.monotonic() + 20
        while not self.hold.wait(0.01):
            if self.interrupted.is_set() or self.closed:
                raise KerncapError("The replayer was stopped.")
            assert time.monotonic() < deadline, "nobody let go"
        if self._now.error is not None:
            raise self._now.error
        base, median = 1000.0, self._now.median_ns
        speed = "SAME" if median == base else ("FASTER" if median < base else "SLOWER")
        document = {"variant_ci95_ns": [median - 2, median + 2], "noise": 0.001, "samples": [10, 10]}
        spread = range(-4, 6)
        return Timing(
            tuple(base + i for i in spread),
            tuple(median + i for i in spread),
            base,
            median,
            base / median,
            speed,
            "dispatch timestamps",
            document,
        )

    def validate(self, _: Path, mode: str = "default") -> Validation:
        self.modes.append(mode)
        return Validation(self._now.verdict, "as scripted", {**self._now.document, "mode": mode})

    def interrupt(self) -> None:
        self.interrupted.set()

    def close(self) -> None:
        self.closed = True


class WorkbenchApp(KerncapApp):
    """Opens on the workbench at once, or over an empty screen."""

    CSS_PATH = CSS

    def __init__(self, make: Callable[[], WorkbenchScreen], *, below: bool, **more: Any) -> None:
        self._make = make
        self._below = below
        super().__init__(**more)

    def get_default_screen(self) -> Screen[None]:
        return Screen() if self._below else self._make()

    def on_mount(self) -> None:
        super().on_mount()
        if self._below:
            self.push_screen(self._make())


@dataclass
class Bench:
    """The screen, the bench and the clock."""

    app: WorkbenchApp
    pilot: Pilot[int]
    fake: FakeBench
    directory: Path
    clock: list[float]

    @property
    def screen(self) -> WorkbenchScreen:
        found = next(s for s in self.app.screen_stack if isinstance(s, WorkbenchScreen))
        assert isinstance(found, WorkbenchScreen)
        return found

    @property
    def told(self) -> str:
        return self.screen.query_one(StatusLine).text

    @property
    def source(self) -> Path:
        return self.directory / "kernel_variant.cpp"

    def shows(self, pane: str) -> str:
        view = self.screen.views.source.view if pane == "source" else self.screen.views.view(pane)
        assert view.display, f"{pane} is not in view"
        return view.text

    def line(self, name: str) -> str:
        return str(self.screen.query_one(f"#{name}").render())  # type: ignore[attr-defined]

    def rows(self) -> list[str]:
        table = self.screen.table
        return ["".join(text for text, _ in table.row(i)) for i in range(len(table.keys))]

    async def until(self, condition: Callable[[], object], what: str = "", limit_s: float = 20.0) -> None:
        deadline = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < deadline, f"{what or 'it'} did not come about: {self.told}"
            await self.pilot.pause(0.02)
        await self.pilot.pause()

    async def attempts(self, count: int) -> None:
        """Waits until so many attempts are there and none is under way."""
        screen = self.screen
        await self.until(
            lambda: len(screen.model.rows) >= count and not screen.busy and screen.model.ready,
            f"attempt {count}",
        )
        await self.pilot.pause()

    def edit(self, old: str, new: str) -> None:
        """A save as editors do it: written beside, then renamed over."""
        text = self.source.read_text()
        assert old in text
        beside = self.source.with_name(".kernel_variant.cpp.swp")
        beside.write_text(text.replace(old, new))
        beside.rename(self.source)


@asynccontextmanager
async def workbench(
    directory: Path,
    fake: FakeBench | None = None,
    *,
    size: tuple[int, int] = (120, 40),
    below: bool = False,
    **more: Any,
) -> AsyncIterator[Bench]:
    """Opens the workbench on a reproducer."""
    bench, clock = fake or FakeBench(), [100.0]
    settings = more.pop("settings", Settings())
    remembered = more.pop("remembered", Remembered())

    def make() -> WorkbenchScreen:
        return WorkbenchScreen(directory, "sim:gfx942", make_bench=lambda _, __: bench)

    app = WorkbenchApp(
        make,
        below=below,
        device="sim:gfx942",
        settings=settings,
        remembered=remembered,
        clock=lambda: clock[0],
        **more,
    )
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        try:
            yield Bench(app, pilot, bench, directory, clock)
        finally:
            bench.closed = True
            bench.hold.set()


@asynccontextmanager
async def real_workbench(
    directory: Path,
    *,
    size: tuple[int, int] = (120, 40),
    below: bool = True,
    clock: list[float] | None = None,
) -> AsyncIterator[Bench]:
    """Opens the workbench on a reproducer of sim:gfx942 with the replayer itself; `clock` stands for time."""
    turned: dict[str, Any] = {} if clock is None else {"clock": lambda: clock[0]}
    app = WorkbenchApp(
        lambda: WorkbenchScreen(directory, "sim:gfx942"),
        below=below,
        device="sim:gfx942",
        settings=Settings(),
        remembered=Remembered(),
        **turned,
    )
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield Bench(app, pilot, None, directory, clock or [0.0])  # type: ignore[arg-type]


def failing(count: int = 40) -> dict[str, Any]:
    """A validation document with `count` wrong floats in one region, as core/judge/validate.py writes it."""
    elements = [
        {
            "index": i,
            "address": f"0x{0x10000 + 4 * i:x}",
            "expected": 2.0,
            "actual": 2.5 + i,
            "relative": 0.2,
        }
        for i in range(count)
    ]
    region = {
        "id": 7,
        "address": "0x10000",
        "bytes": 1024,
        "dtype": "f32",
        "extent": [0, 256],
        "mismatches": count,
        "mismatch_bytes": 4 * count,
        "tolerated": 0,
        "masked_bytes": 0,
        "max_abs": 39.5,
        "max_rel": 19.75,
        "max_ulp": 4194304,
        "ulp_histogram": {"257-65536": 3, "more": count - 3},
        "new_nans": 1,
        "signed_zeros": 0,
        "first": elements[0],
        "worst": elements[-1],
        "rms": 12.5,
        "differing": count,
        "elements": elements,
        "error_histogram": {"1e-3": 2, "1e-1": count - 2},
        "error_map": {"cell_bytes": 4, "cells": [[4 * i, 0.2] for i in range(count)]},
    }
    other = {**region, "id": 9, "mismatches": 0, "elements": [], "error_map": {"cells": []}}
    other = {**other, "ulp_histogram": {}, "error_histogram": {}, "max_abs": None, "new_nans": 0}
    return {
        "verdict": "FAIL",
        "reason": f"{count} elements differ; the first: element 0 of region 7 is 2.5, should be 2.0",
        "compared_bytes": 1280,
        "compare_s": 0.00015,
        "regions": [region, other],
        "warnings": [],
    }


def record(number: int, median_ns: float, outcome: str = "passed", **more: Any) -> dict[str, Any]:
    """iteration.json of an attempt, the same in every run."""
    return {
        "schema": SCHEMA,
        "number": number,
        "files": ["kernel_variant.cpp"],
        "outcome": outcome,
        "seconds": {"build": 0.21, "replay": 0.034, "validate": 0.0071, "total": 0.26},
        "build": {"warnings": "", "steps": {"compile": 0.19, "link": 0.02, "total": 0.21}},
        "timing": {
            "baseline_ns": [7180.0 + i for i in range(-9, 10)],
            "variant_ns": [median_ns + 3 * i for i in range(-9, 10)],
            "baseline_median_ns": 7180.0,
            "variant_median_ns": median_ns,
            "variant_ci95_ns": [median_ns - 12, median_ns + 12],
            "noise": 0.002,
            "samples": [19, 19],
            "speed": "FASTER" if median_ns < 7180 else "SAME",
            "timer": "dispatch timestamps",
        },
        "validation": {"verdict": "IDENTICAL", "reason": "1280 bytes compared", "compared_bytes": 1280},
        **more,
    }
