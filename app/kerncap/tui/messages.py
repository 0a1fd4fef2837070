"""What workers tell the screens: each message carries a snapshot that nobody changes afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from kerncap.core.code.telling import Described
    from kerncap.core.extract.capture_run import Progress
    from kerncap.core.extract.extract import ExtractResult
    from kerncap.core.loop.captures import Listed
    from kerncap.core.program.live import KernelStats
    from kerncap.core.program.workload import Ended


@dataclass(frozen=True, slots=True)
class Board:
    """All figures of a run at one moment, summed over its processes. Times in ns unless said."""

    elapsed_s: float = 0.0
    kernels: tuple[KernelStats, ...] = ()
    dispatches: int = 0
    timed: int = 0
    rejected: int = 0
    lost: int = 0
    pending: int = 0
    own_ns: int = 0  # what the interposer itself took, over all threads
    simulated: bool = False
    sampling: bool = False  # some process has stopped timing every dispatch
    devices: tuple[str, ...] = ()
    processes: int = 0
    allocated: int = 0  # bytes that running processes have from the runtime: no capture can be larger
    notes: tuple[str, ...] = ()  # warnings of the interposer's
    described: Mapping[str, Described] = field(default_factory=dict)  # how kernels were compiled, by id


class RunMessage(Message):
    """Something about the program's run number `run`; screens ignore those of earlier runs."""

    def __init__(self, run: int) -> None:
        super().__init__()
        self.run = run


class ProgramStarted(RunMessage):
    """The program runs, as process `pid`."""

    def __init__(self, run: int, pid: int, device: str) -> None:
        super().__init__(run)
        self.pid = pid
        self.device = device


class Figures(RunMessage):
    """The figures now. A newer one makes an older one in the queue needless."""

    def __init__(self, run: int, board: Board) -> None:
        super().__init__(run)
        self.board = board

    def can_replace(self, message: Message) -> bool:
        """A newer snapshot replaces an older one."""
        return isinstance(message, Figures) and message.run == self.run


class Output(RunMessage):
    """New lines of the program's own output; `skipped` came too fast and are only counted."""

    def __init__(self, run: int, lines: tuple[str, ...], skipped: int, total_bytes: int) -> None:
        super().__init__(run)
        self.lines = lines
        self.skipped = skipped
        self.total_bytes = total_bytes


class ProgramEnded(RunMessage):
    """The program has ended; `reason` says why nothing was seen, where nothing was."""

    def __init__(self, run: int, ended: Ended | None, reason: str, left: int = 0) -> None:
        super().__init__(run)
        self.ended = ended
        self.reason = reason
        self.left = left  # processes that it left running


class ProgramFailed(RunMessage):
    """The program could not be started, or watching it went wrong: a sentence."""

    def __init__(self, run: int, sentence: str) -> None:
        super().__init__(run)
        self.sentence = sentence


class ExtractionProgress(Message):
    """Where an extraction is."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress = progress

    def can_replace(self, message: Message) -> bool:
        """A newer one replaces an older one."""
        return isinstance(message, ExtractionProgress)


class ExtractionEnded(Message):
    """An extraction is over: a result, or the sentence why there is none; `cancelled`: the user wanted so."""

    def __init__(self, result: ExtractResult | None, sentence: str = "", cancelled: bool = False) -> None:
        super().__init__()
        self.result = result
        self.sentence = sentence
        self.cancelled = cancelled


class CapturesListed(Message):
    """The captures on disk, or why they cannot be listed."""

    def __init__(self, captures: tuple[Listed, ...], sentence: str = "") -> None:
        super().__init__()
        self.captures = captures
        self.sentence = sentence
