"""What the extract dialog asks for, checked: pure functions between the fields and a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kerncap.core.errors import KerncapError, UsageError
from kerncap.core.program.device_words import AMD, DeviceWords
from kerncap.core.units import times

if TYPE_CHECKING:
    from kerncap.core.program.live import KernelStats
    from kerncap.core.program.workload import Command
    from kerncap.tui.services.extraction import Wanted
    from kerncap.tui.services.program import Program

NEXT, NUMBER, SLOWEST = "next", "number", "slowest"
RUNNING, RERUN = "running", "rerun"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where dispatches come from: the program, and its run if there is one."""

    command: Command
    device: str | None
    source_dir: Path | None
    program: Program | None
    running: bool
    allocated: int = 0  # bytes that the program has from the runtime; 0: not known
    words: DeviceWords = AMD
    launches: Callable[[], int] | None = None  # of the kernel, by now


@dataclass(frozen=True, slots=True)
class Fields:
    """The dialog's fields as they stand."""

    which: str
    number: str
    grid: str
    origin: str
    source: str
    output: str
    memory: str
    replace: bool


def free_output(wanted: Path) -> Path:
    """`wanted`, or the first of `wanted-2`, `wanted-3` ... that does not exist."""
    found, number = wanted, 1
    while found.exists() or found.is_symlink():
        number += 1
        found = wanted.with_name(f"{wanted.name}-{number}")
    return found


def parse_grid(text: str, items: str) -> tuple[int, int, int] | None:
    """`512`, `512,1,1` or `512x1x1` of `items` ("work-items"); None for nothing. Raises UsageError."""
    words = text.replace("x", ",").replace(" ", "").split(",") if text.strip() else []
    if not words:
        return None
    try:
        sizes = [int(word) for word in words]
    except ValueError:
        sizes = []
    if not 1 <= len(sizes) <= 3 or any(size < 1 for size in sizes):
        raise UsageError(f"grid {text!r} is not one to three positive numbers ({items}: 512,1,1)")
    x, y, z = [*sizes, 1, 1][:3]
    return x, y, z


def slowest_number(kernel: KernelStats) -> int:
    """Which dispatch took longest, from 1; 0 where that is not known."""
    return kernel.slowest_dispatch


def wanted_of(fields: Fields, kernel: KernelStats, origin: Origin) -> Wanted:
    """The request. Raises UsageError with a sentence for what cannot be."""
    from kerncap.tui.services.extraction import Wanted

    number = 0
    if fields.which == NUMBER:
        if not fields.number.strip().isdigit() or int(fields.number) < 1:
            raise UsageError(f"dispatch {fields.number!r} is no number from 1")
        number = int(fields.number)
    elif fields.which == SLOWEST:
        number = slowest_number(kernel)
        if not number:
            raise UsageError("which dispatch was the slowest is not known; name its number")
    in_running = fields.origin == RUNNING
    program = origin.program
    session = program.session if program is not None else None
    if in_running and session is None:
        raise UsageError("the program has ended meanwhile; choose a rerun")
    if in_running and number and number <= kernel.calls:
        raise UsageError(
            f"dispatch {number} is over ({kernel.calls} were launched); choose a rerun, or a later number"
        )
    if not fields.output.strip():
        raise UsageError("the output is empty; name a directory")
    source = Path(fields.source).expanduser() if fields.source.strip() else None
    wanted = Wanted(
        kernel_id=kernel.id,
        command=origin.command,
        device=origin.device,
        output=Path(fields.output).expanduser(),
        dispatch=number,
        grid=parse_grid(fields.grid, origin.words.items),
        session=session.directory if in_running and session is not None else None,
        session_device=program.device if in_running and program is not None else None,
        source_dir=source,
        memory=fields.memory,
        force=fields.replace,
    )
    _check(wanted)
    return wanted


def _check(wanted: Wanted) -> None:
    from kerncap.core.extract.extract import check_request

    check_request(
        wanted.kernel_id,
        output=wanted.output,
        force=wanted.force,
        source_dir=wanted.source_dir,
        defines=wanted.defines,
        language="auto",
        memory=wanted.memory,
        timeout=None,
    )


def waiting_text(wanted: Wanted, launches: int, before: int) -> str:
    """While a dispatch of a running program does not come: how often the kernel was launched, and what else
    there is. `before`: when it was asked for.
    """
    since = launches - before
    text = f"It was launched {times(launches)} so far"
    if wanted.dispatch:
        text += f"; dispatch {wanted.dispatch} is waited for"
    elif since > 0 and wanted.grid is not None:
        text += f", {since} of them since this was asked for, with other grids"
    elif since <= 0:
        text += ", and not since this was asked for"
    return (
        f"{text}. If the program goes on without launching it{' so' if since > 0 else ' again'}, "
        "r captures one by a rerun, from the start."
    )


def room_text(output: str, expected: int, free: Callable[[Path], int]) -> tuple[str, bool]:
    """Expected size against free space, and whether it is too little."""
    from kerncap.tui.extract.progress import size_text

    try:
        room = free(Path(output).expanduser().absolute())
    except (OSError, KerncapError):
        return "the free space there cannot be told", False
    if not expected:
        return f"{size_text(room)} free; how much the kernel reaches shows when it is saved", False
    # Holes take no room; what changed is saved a second time, and is a part of the first.
    text = f"at most {size_text(expected)}, all that the program allocated; {size_text(room)} free"
    return text, expected > room
