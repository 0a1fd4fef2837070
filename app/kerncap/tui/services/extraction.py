"""An extraction in a thread: progress in messages, and a way to give it up that leaves nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.message import Message

from kerncap.tui.messages import ExtractionEnded, ExtractionProgress
from kerncap.tui.services.trouble import unexpected

if TYPE_CHECKING:
    from kerncap.core.device.devices import Device
    from kerncap.core.extract.capture_run import Progress
    from kerncap.core.program.workload import Command

_POST_EVERY_S = 0.1
_REPLAYER = "kerncap-replay"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be extracted. `session`: of a program that runs, its directory; None: by a rerun."""

    kernel_id: str
    command: Command
    device: str | None
    output: Path
    dispatch: int = 0  # 0: the next one (running program only)
    grid: tuple[int, int, int] | None = None
    session: Path | None = None
    session_device: Device | None = None
    source_dir: Path | None = None
    defines: tuple[str, ...] = ()
    memory: str = "reachable"
    force: bool = False

    def options(self) -> dict[str, Any]:
        """What both ways of extracting take."""
        return {
            "grid": self.grid,
            "source_dir": self.source_dir,
            "defines": self.defines,
            "output": self.output,
            "memory": self.memory,
            "force": self.force,
        }


class Extraction:
    """One extraction. `start` returns at once; `ExtractionEnded` is posted in any case."""

    def __init__(self, wanted: Wanted, post: Callable[[Message], object]) -> None:
        self.wanted = wanted
        self._post = post
        self._cancelled = threading.Event()
        self._posted = 0.0
        self._stage = ""
        self._thread = threading.Thread(target=self._work, name="kerncap-extraction", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def cancel(self) -> None:
        """Gives it up; what was written is removed before `ExtractionEnded` is posted."""
        self._cancelled.set()
        if self._stage == "replaying":
            end_replayers()

    def end_now(self, limit_s: float = 2.0) -> None:
        """Gives it up, and waits for that."""
        self.cancel()
        if self._thread.is_alive():
            self._thread.join(limit_s)

    def _progress(self, progress: Progress) -> None:
        from kerncap.core.errors import Interrupted

        if self._cancelled.is_set():
            raise Interrupted("cancelled")
        now = time.monotonic()
        if progress.stage != self._stage or now - self._posted >= _POST_EVERY_S:
            self._stage = progress.stage
            self._posted = now
            self._post(ExtractionProgress(progress))

    def _work(self) -> None:
        from kerncap.core.errors import Interrupted, KerncapError

        try:
            self._post(ExtractionEnded(self._extract()))
        except (KerncapError, Interrupted) as error:
            self._post(ExtractionEnded(None, error.message, self._cancelled.is_set()))
        except OSError as error:
            reason = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror or error)
            sentence = f"the extraction ended with an error of the system: {reason}. Nothing was kept."
            self._post(ExtractionEnded(None, sentence, self._cancelled.is_set()))
        except Exception as error:  # whoever waits for us must learn of it
            self._post(ExtractionEnded(None, unexpected(error), self._cancelled.is_set()))

    def _extract(self) -> Any:
        wanted = self.wanted
        if wanted.session is not None:
            from kerncap.core.extract.extract_running import extract_running

            return extract_running(
                wanted.kernel_id,
                wanted.session,
                dispatch=wanted.dispatch,
                device=wanted.session_device,
                command=wanted.command,
                on_progress=self._progress,
                **wanted.options(),
            )
        from kerncap.core.extract.extract import extract

        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            return extract(
                wanted.kernel_id,
                wanted.command,
                device=wanted.device,
                dispatch=max(1, wanted.dispatch),
                stdin=nothing,
                stdout=nothing,
                stderr=nothing,
                on_progress=self._progress,
                **wanted.options(),
            )
        finally:
            os.close(nothing)


def end_replayers() -> None:
    """Ends the replayers that this process has started: a baseline that nobody waits for any more."""
    me = str(os.getpid())
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = Path(entry.path, "stat").read_text()
            name, parent = (
                text[text.index("(") + 1 : text.rindex(")")],
                text[text.rindex(")") + 2 :].split()[1],
            )
            if parent == me and _REPLAYER.startswith(name) and len(name) >= 14:
                os.kill(int(entry.name), signal.SIGKILL)
