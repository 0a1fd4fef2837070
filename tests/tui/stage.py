"""A stage for the terminal UI: an event source and a clock that the test controls."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from textual.message import Message
from textual.pilot import Pilot

from kerncap.core.program.live import KernelStats
from kerncap.core.program.workload import Command, Ended
from kerncap.tui.app import KerncapApp
from kerncap.tui.messages import Board, Figures, Output, ProgramEnded, ProgramFailed, ProgramStarted
from kerncap.tui.screens.leaderboard import LeaderboardScreen
from kerncap.tui.settings import Settings

NAMES = (
    "void ns::mul_mat_vec_q<(type)39, 4>(void const*, float*, int)",
    "f[abi:cxx11](int)[with T = float]",
    "a[/b]c",
    "rms_norm",
    "__amd_rocclr_copyBuffer",
)


DECODE = Command(("./decode", "--tokens", "16"))


def kernel(number: int, name: str = "", *, calls: int = 10, mean_ns: int = 1000, **more: Any) -> KernelStats:
    """One kernel's figures."""
    histogram = np.zeros(64, np.uint32)
    histogram[max(0, mean_ns.bit_length() - 1)] = calls
    name = name or NAMES[number % len(NAMES)]
    values: dict[str, Any] = {
        "id": f"{number * 0x9E3779B97F4A7C15 % (1 << 64):016x}",
        "name": name,
        "symbol": f"_Z{number}k",
        "kind": "runtime" if name.startswith("__amd") else "hip",
        "vgprs": 40,
        "sgprs": 32,
        "lds_bytes": 4096,
        "scratch_bytes": 0,
        "code_hash": "0123456789abcdef",
        "device_index": 0,
        "calls": calls,
        "timed": calls,
        "total_ns": calls * mean_ns,
        "min_ns": mean_ns // 2,
        "max_ns": mean_ns * 3,
        "last_ns": mean_ns,
        "grid": (8192, 1, 1),
        "block": (64, 1, 1),
        "dynamic_lds_bytes": 0,
        "last_seen_ns": number,
        "histogram": histogram,
    }
    return KernelStats(**{**values, **more})


def board(*kernels: KernelStats, elapsed_s: float = 1.0, **more: Any) -> Board:
    """The figures of one moment."""
    calls = sum(k.calls for k in kernels)
    values: dict[str, Any] = {
        "elapsed_s": elapsed_s,
        "kernels": tuple(kernels),
        "dispatches": calls,
        "timed": calls,
        "own_ns": 2_000_000,
        "simulated": True,
        "devices": ("gfx942",),
        "processes": 1,
    }
    return Board(**{**values, **more})


def five(step: int = 1) -> list[KernelStats]:
    """Five kernels, the first one hottest; `step` makes them grow."""
    means = (9000, 4000, 3000, 2000, 500)
    return [kernel(i, calls=10 * step, mean_ns=mean) for i, mean in enumerate(means)]


@dataclass
class FakeProgram:
    """A run that the test drives: what happens is what it posts."""

    run: int
    command: Command
    name: str | None
    post: Callable[[Message], object]
    hertz: float
    session: Any = None
    device: Any = None
    stopped: bool = False
    ended_now: bool = False

    def start(self) -> None:
        self.post(ProgramStarted(self.run, 4711, self.name or "sim:gfx942"))

    def stop(self) -> None:
        self.stopped = True

    def end_now(self) -> None:
        self.ended_now = True

    def set_rate(self, hertz: float) -> None:
        self.hertz = hertz

    def figures(self, *kernels: KernelStats, **more: Any) -> None:
        self.post(Figures(self.run, board(*kernels, **more)))

    def prints(self, *lines: str, skipped: int = 0) -> None:
        self.post(Output(self.run, lines, skipped, sum(map(len, lines))))

    def ends(self, code: int = 0, signal: str | None = None, reason: str = "", left: int = 0) -> None:
        self.post(ProgramEnded(self.run, Ended(code, signal), reason, left))

    def fails(self, sentence: str) -> None:
        self.post(ProgramFailed(self.run, sentence))


@dataclass
class FakeExtraction:
    """An extraction that the test drives."""

    wanted: Any
    post: Callable[[Message], object]
    started: bool = False
    cancelled: bool = False

    def start(self) -> None:
        self.started = True

    def cancel(self) -> None:
        self.cancelled = True

    def end_now(self) -> None:
        self.cancelled = True


@dataclass
class Stage:
    """The application under test, with what it was given."""

    app: KerncapApp
    pilot: Pilot[int]
    programs: list[FakeProgram] = field(default_factory=list)
    extractions: list[FakeExtraction] = field(default_factory=list)
    opened: list[Path] = field(default_factory=list)
    clock: list[float] = field(default_factory=lambda: [0.0])

    @property
    def program(self) -> FakeProgram:
        return self.programs[-1]

    @property
    def screen(self) -> Any:
        return self.app.screen

    @property
    def leaderboard(self) -> LeaderboardScreen:
        found = self.app.screen_stack[0]
        assert isinstance(found, LeaderboardScreen)
        return found

    async def press(self, *keys: str) -> None:
        """Presses keys and lets everything come to rest."""
        await self.pilot.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        for _ in range(3):
            await self.pilot.pause()

    async def show(self, *kernels: KernelStats, **more: Any) -> None:
        """New figures from the program."""
        self.program.figures(*(kernels or five()), **more)
        await self.settle()

    def text(self) -> str:
        """The screen as plain lines."""
        width, height = self.app.size
        lines = []
        for strip in self.app.screen._compositor.render_strips():
            lines.append("".join(segment.text for segment in strip).rstrip())
        assert len(lines) == height, (len(lines), width, height)
        return "\n".join(lines)

    async def until(self, part: str, limit_s: float = 20.0) -> None:
        """Until the screen shows that; for what a thread does."""
        deadline = time.monotonic() + limit_s
        while part not in self.text():
            assert time.monotonic() < deadline, f"{part!r} did not appear:\n{self.text()}"
            await self.pilot.pause(0.05)

    async def until_true(self, condition: Callable[[], object], limit_s: float = 20.0) -> None:
        """Until that holds."""
        deadline = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < deadline, self.text()
            await self.pilot.pause(0.02)

    def told(self) -> str:
        """The sentence in the status line of the leaderboard."""
        return str(self.leaderboard.query_one("StatusLine").text)  # type: ignore[attr-defined]


@asynccontextmanager
async def stage(
    size: tuple[int, int] = (120, 40),
    command: Command | None = DECODE,
    settings: Settings | None = None,
    **more: Any,
) -> AsyncIterator[Stage]:
    """The application with fakes in place of the program and of extractions."""
    clock = [0.0]
    app = KerncapApp(
        command, device="sim:gfx942", settings=settings or Settings(), clock=lambda: clock[0], **more
    )
    async with app.run_test(size=size) as pilot:
        held = Stage(app, pilot, clock=clock)

        def make_program(*arguments: Any) -> FakeProgram:
            held.programs.append(FakeProgram(*arguments))
            return held.programs[-1]

        def make_extraction(wanted: Any, post: Any) -> FakeExtraction:
            held.extractions.append(FakeExtraction(wanted, post))
            return held.extractions[-1]

        app.make_program = make_program  # type: ignore[method-assign]
        app.make_extraction = make_extraction  # type: ignore[assignment,method-assign]
        app.open_workbench = held.opened.append  # type: ignore[assignment,method-assign]
        await held.settle()
        yield held
