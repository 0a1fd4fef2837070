"""The program under the interposer: started, watched and ended in a thread, told about in messages."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from textual.message import Message

from kerncap.tui.messages import Board, Figures, Output, ProgramEnded, ProgramFailed, ProgramStarted
from kerncap.tui.services.trouble import unexpected

if TYPE_CHECKING:
    from kerncap.core.device.devices import Device
    from kerncap.core.device.runtimes import RuntimeWatch
    from kerncap.core.program.control import Session
    from kerncap.core.program.live import Snapshot
    from kerncap.core.program.workload import Command, Workload
    from kerncap.core.triton.triton_choice import Configurations

Post = Callable[[Message], object]
_TICK_S = 0.02  # between looks at what the program has loaded, while it begins
_BEGINNING_S = 2.0
_REST_S = 0.1  # and later; the longest that a key which ends the program waits
_QUICK_END_S = 1.2  # between SIGTERM and SIGKILL where the terminal is going away


class Program(Protocol):
    """A run of the program as the leaderboard sees it. Tests have one that they drive themselves."""

    run: int
    session: Session | None  # for captures while it runs
    device: Device | None

    def start(self) -> None:
        """Begins; what happens is posted."""

    def stop(self) -> None:
        """Ends the program and all that it started; returns at once, `ProgramEnded` follows."""

    def end_now(self) -> None:
        """Ends it, waiting two seconds at most: the application ends."""

    def set_rate(self, hertz: float) -> None:
        """How often figures are posted."""


def board_of(snapshot: Snapshot, elapsed_s: float, configurations: Configurations) -> Board:
    """A snapshot of all processes, summed."""
    kernels = tuple(snapshot.unordered)
    return Board(
        elapsed_s=elapsed_s,
        kernels=kernels,
        described=configurations.of(kernels),
        dispatches=snapshot.total("dispatches"),
        timed=snapshot.total("timed"),
        rejected=snapshot.total("rejected"),
        lost=snapshot.total("lost"),
        pending=snapshot.total("pending"),
        own_ns=snapshot.total("own_ns"),
        simulated=snapshot.simulated,
        sampling=snapshot.sampling,
        devices=tuple(dict.fromkeys(name for p in snapshot.processes for name in p.devices)),
        processes=len(snapshot.processes),
        allocated=sum(p.allocated for p in snapshot.processes if not p.exited),
        notes=tuple(f"process {p.pid}: {p.message}" for p in snapshot.processes if p.message),
    )


class LiveProgram:
    """A real run: one thread that starts the program, reads its statistics and waits for its end."""

    def __init__(self, run: int, command: Command, device: str | None, post: Post, hertz: float) -> None:
        self.run = run
        self.session: Session | None = None
        self.device: Device | None = None
        self._command = command
        self._device_name = device
        self._post = post
        self._interval = 1.0 / hertz
        self._stop = threading.Event()
        self._workload: Workload | None = None
        self._thread = threading.Thread(target=self._watch, name="kerncap-program", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def set_rate(self, hertz: float) -> None:
        """How often figures are posted."""
        self._interval = 1.0 / hertz

    def stop(self) -> None:
        """Ends the program; returns at once."""
        self._stop.set()

    def end_now(self) -> None:
        """Ends the program within two seconds."""
        self._stop.set()
        workload = self._workload
        if workload is not None and self._thread.is_alive():
            with contextlib.suppress(Exception):
                workload.end(_QUICK_END_S)
        if self._thread.is_alive():
            self._thread.join(0.5)

    def _watch(self) -> None:
        from kerncap.core.errors import KerncapError

        try:
            self._run()
        except KerncapError as error:
            self._post(ProgramFailed(self.run, error.message))
        except OSError as error:
            reason = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror or error)
            self._post(ProgramFailed(self.run, f"the program cannot be watched: {reason}."))
        except Exception as error:  # whoever waits for us must learn of it
            self._post(ProgramFailed(self.run, unexpected(error)))

    def _run(self) -> None:
        # Imported here, in the thread: numpy and the rest are no part of the first paint.
        from kerncap.core.device.devices import full_environment, resolve_device
        from kerncap.core.device.runtimes import RuntimeWatch, no_dispatch_reason
        from kerncap.core.program.control import Session
        from kerncap.core.program.live import LiveReader
        from kerncap.core.program.workload import Workload
        from kerncap.core.triton.triton_choice import Configurations
        from kerncap.tui.services.output_pump import OutputPump
        from kerncap.tui.services.preload import preload

        device = resolve_device(self._device_name)
        with Session.create() as session, LiveReader(session.directory) as reader:
            watch = RuntimeWatch(session.directory)
            configurations = Configurations(session.directory)
            pump = OutputPump(self._on_lines)
            nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            try:
                workload = Workload(
                    self._command,
                    full_environment(device, session.directory),
                    stdin=nothing,
                    stdout=pump.slave,
                    stderr=pump.slave,
                    session=session.directory,
                )
                self._workload = workload
                with workload:
                    pump.started()
                    self.session, self.device = session, device
                    self._post(ProgramStarted(self.run, workload.pid, device.name))
                    preload()

                    def figures() -> Board:
                        elapsed = time.monotonic() - workload.started
                        return board_of(reader.snapshot(), elapsed, configurations)

                    left = self._until_end(workload, figures, watch)
                    pump.finish()
                    board = figures()
                    self.session = None
                    self._post(Figures(self.run, board))
                    reason = ""
                    if not board.dispatches:
                        reason = session.unwatched or no_dispatch_reason(workload.program, watch, device.kind)
                    self._post(ProgramEnded(self.run, workload.poll(), reason, left))
            finally:
                self.session = None
                os.close(nothing)
                pump.close()

    def _until_end(self, workload: Workload, figures: Callable[[], Board], watch: RuntimeWatch) -> int:
        """Posts figures until the program has ended, or is to be; returns how many of its processes are
        left.
        """
        due = workload.started
        while True:
            ended = workload.poll()
            watch.look(workload.descendants)
            now = time.monotonic()
            if now >= due:
                due = max(due + self._interval, now)
                self._post(Figures(self.run, figures()))
            if self._stop.is_set():
                workload.end()
                return 0
            if ended is not None:
                return len(workload.descendants())
            most = _TICK_S if now - workload.started < _BEGINNING_S else _REST_S
            workload.sleep(min(most, max(0.0, due - time.monotonic())))

    def _on_lines(self, lines: tuple[str, ...], skipped: int, total_bytes: int) -> None:
        self._post(Output(self.run, lines, skipped, total_bytes))
