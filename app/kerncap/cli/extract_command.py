"""`kerncap extract`."""

from __future__ import annotations

import shlex
from typing import Any

import click

from kerncap.cli.output import ProgressLine, device_option, emit_json, json_option, note, program_stdout, say
from kerncap.cli.parameters import PATH, SECONDS
from kerncap.core.code.layout import CaptureState
from kerncap.core.code.names import instance_name, one_line
from kerncap.core.device.devices import resolve_device
from kerncap.core.extract.capture_run import CAPTURE_LIMIT_S, STAGES, Progress
from kerncap.core.extract.extract import LANGUAGE_CHOICES, ExtractResult, baseline_error, extract
from kerncap.core.extract.extract_running import extract_running
from kerncap.core.program.control import MOST_DISPATCHES
from kerncap.core.program.device_words import words_of
from kerncap.core.program.workload import parse_command
from kerncap.core.units import many, size

_PROGRAM = {
    "ended": "ended by kerncap once the capture was on disk (--keep-running lets it go on)",
    "timed-out": "ended by kerncap at its time limit (--timeout), after the capture",
    "exited": "ran to its own end",
    "running": "runs on",
}
# While the program still runs, its own output owns the terminal.
_SILENT = ("waiting",)
_LONG_S = 5.0


def _progress_text(kernel: str, progress: Progress) -> str:
    text = f"{kernel}: {progress.stage}"
    if progress.bytes_total:
        text += f" {size(progress.bytes_done)} of {size(progress.bytes_total)}"
        if progress.seconds > 0.05 and progress.bytes_done:
            rate = progress.bytes_done / progress.seconds
            text += f", {rate / 1e9:.2f} GB/s"
            if progress.bytes_done < progress.bytes_total:
                text += f", {(progress.bytes_total - progress.bytes_done) / rate:.0f} s left"
    return text


class Patience:
    """Says once, also where no terminal shows progress, that the captured dispatch takes long."""

    def __init__(self, device: str | None, timeout: float | None) -> None:
        self._device = device
        self._limit_s = min(CAPTURE_LIMIT_S, timeout or CAPTURE_LIMIT_S)
        self._told = False

    def look(self, kernel: str, progress: Progress) -> None:
        """What there is to say of it, on stderr."""
        if self._told or progress.stage != STAGES[CaptureState.RUNNING] or progress.seconds < _LONG_S:
            return
        self._told = True
        ends = f"it is given up after {self._limit_s:g} s (--timeout)"
        if resolve_device(self._device).simulated:
            ends += ", or by the simulator's own limit (KERNCAP_SIM_MAX_SECONDS)"
        note(f"{kernel}: the captured dispatch has not ended after {progress.seconds:.0f} s; {ends}")


def show(result: ExtractResult) -> None:
    """The result for a person."""
    say()  # the program may have been ended in the middle of a line
    name = one_line(instance_name(result.demangled) or result.kernel, 160)
    say(f"{name} ({result.id}), dispatch {result.dispatch}, on {result.device}")
    say(f"  grid      {words_of(result.arch).launch(result.grid, result.block)}")
    say(
        f"  memory    {many(result.regions, 'region')}, {size(result.bytes)}, "
        f"{size(result.changed_bytes)} changed; saved in {result.snapshot_s:.3f} s"
    )
    source = result.source
    if source.variant:
        more = len(source.files) - 1
        say(
            f"  source    {source.language}: {source.variant}"
            + (f" and {many(more, 'more file')}" if more > 0 else "")
        )
    else:
        say(f"  source    none: {source.reason}")
    say(f"  baseline  {result.baseline.get('verdict')}")
    say(f"  output    {result.output} ({size(result.bytes_on_disk)} on disk)")
    say(f"  program   {_PROGRAM[result.program]}")
    if source.edit is not None:
        where = shlex.quote(result.output)
        name, line = source.edit
        say(
            f"Next: edit {shlex.quote(f'{result.output}/{name}')}{f':{line}' if line else ''}, "
            f"then make -C {where} recompile validate"
        )


@click.command()
@click.argument("kernel")
@click.option(
    "--dispatch",
    type=click.IntRange(1, MOST_DISPATCHES),
    metavar="N",
    help="Its N-th dispatch in its process (default 1; with --session: the next one). Of a kernel named "
    "otherwise than by its id, those by which an autotuner times it are not counted.",
)
@click.option(
    "--session",
    type=PATH,
    metavar="DIR",
    help="In programs that run already with this session (kerncap env).",
)
@click.option("--grid", metavar="X,Y,Z", help="Only one with this grid, in work-items (CUDA: threads).")
@click.option("--source-dir", type=PATH, metavar="DIR", help="Where the program's source is.")
@click.option(
    "-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Defined when the kernel is recompiled."
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="DIR",
    help="Where to (default ./isolated/KERNEL by its name; KERNEL-2 ... where that is another kernel's).",
)
@click.option(
    "--language",
    type=click.Choice(LANGUAGE_CHOICES),
    default="auto",
    help="Which source is looked for; none: not at all (default auto).",
)
@click.option("--memory", type=click.Choice(["reachable", "all"]), default="reachable", help="What is saved.")
@click.option("--keep-running", is_flag=True, help="Let the program go on after the capture.")
@click.option("--timeout", type=SECONDS, metavar="S", help="Give up after S seconds.")
@click.option(
    "--force", is_flag=True, help="Replace an earlier capture; one that was worked on is kept as DIR.old."
)
@click.option(
    "--cmd", metavar="COMMAND", help="The program as one string, split into words; no shell runs it."
)
@device_option
@json_option
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def command(
    kernel: str,
    program: tuple[str, ...],
    cmd: str | None,
    session: str | None,
    device: str | None,
    dispatch: int | None,
    grid: str | None,
    defines: tuple[str, ...],
    keep_running: bool,
    as_json: bool,
    **options: Any,
) -> Any:
    """Run PROGRAM, capture one dispatch of KERNEL, and write a reproducer.

    KERNEL is an id from `kerncap profile`, a mangled or demangled name, or a part of one that fits one
    kernel.
    """
    line = ProgressLine()
    patience = Patience(device, options["timeout"])

    def on_progress(progress: Progress) -> None:
        patience.look(kernel, progress)
        if progress.stage not in _SILENT:
            line.show(_progress_text(kernel, progress))

    common: dict[str, Any] = {**options, "grid": _grid(grid), "defines": defines, "on_progress": on_progress}
    try:
        if session is not None:
            if program or cmd or device or keep_running:
                raise click.UsageError("--session takes no program, --cmd, --device or --keep-running")
            result = extract_running(kernel, session, dispatch=dispatch or 0, **common)
        else:
            result = extract(
                kernel,
                parse_command(program, cmd),
                device=device,
                dispatch=dispatch or 1,
                keep_running=keep_running,
                stdout=program_stdout(as_json),
                **common,
            )
    finally:
        line.clear()
    if as_json:
        emit_json(result.to_json())
    else:
        show(result)
    for warning in result.warnings:
        note(warning)
    error = baseline_error(result)
    if error is not None:
        note(error.message)
        return error.exit_code
    return 0


def _grid(text: str | None) -> tuple[int, int, int] | None:
    if text is None:
        return None
    parts = text.replace("x", ",").split(",")
    if not 1 <= len(parts) <= 3 or not all(part.isdigit() and 0 < int(part) < 2**32 for part in parts):
        raise click.BadParameter(
            f"{text!r} is no grid; write X,Y,Z in work-items (CUDA: threads)", param_hint="--grid"
        )
    x, y, z = (*map(int, parts), 1, 1)[:3]
    return x, y, z
