"""`kerncap watch`."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Any

import click

from kerncap.cli.output import device_option, emit_json, json_option, note, say
from kerncap.cli.parameters import PATH, limit_option, tolerance_options
from kerncap.core.build.compile_file import CompileFile
from kerncap.core.capture.records import Capture
from kerncap.core.errors import InconclusiveError, Interrupted
from kerncap.core.interrupts import interrupted_by, interruptible
from kerncap.core.judge.verdict import INCONCLUSIVE
from kerncap.core.loop import events as loop_events
from kerncap.core.loop.captures import open_capture
from kerncap.core.loop.judging import EXACTLY, Judging, changed, parse_dtypes, remember, remembered
from kerncap.core.loop.session import open_loop
from kerncap.core.units import duration

SCHEMA = "kerncap-watch/1"
_OUTCOME_CODES = {"passed": 0, "failed": 1, "build-failed": 2}


class Lines:
    """The loop's events as lines. A time is shown with its verdict only: a wrong result has no speedup."""

    def __init__(self) -> None:
        self._timed: loop_events.Timing | None = None
        self._failed = ""  # what was said of a fault, whose verdict says no more

    def line(self, event: loop_events.Event) -> str | None:
        """One step of the loop as text; None for what needs none."""
        seconds = f"{event.seconds:.2f} s"
        match event:
            case loop_events.Watching(files=files):
                return f"watching {', '.join(files)}; ready after {seconds}"
            case loop_events.Saved(number=number, files=files):
                self._timed, self._failed = None, ""
                return f"{number}: " + (f"saved {', '.join(files)}" if files else "the source as it stands")
            case loop_events.Built(number=number, warnings=warnings):
                return f"{number}: built in {seconds}" + (
                    f"\n{warnings.rstrip()}" if warnings.strip() else ""
                )
            case loop_events.BuildFailed(number=number, message=message, output=output):
                return f"{number}: does not build ({seconds}): {message}\n{output.rstrip()}".rstrip()
            case loop_events.Timed(number=number, timing=timing):
                self._timed = timing
                return f"{number}: timed in {seconds}"
            case loop_events.Validated(number=number, validation=validation) if validation is not None:
                why = f": {validation.summary}" if validation.summary != self._failed else ""
                verdict = f"{number}: {validation.verdict}{why} ({seconds})"
                return verdict + self._time(number, validation.passed)
            case loop_events.Failed(number=number, step=loop_events.FIT, message=message):
                return f"{number}: built, but does not fit the captured launch ({seconds}): {message}"
            case loop_events.Failed(number=number, step=step, message=message):
                self._failed = message
                return f"{number}: {step} failed ({seconds}): {message}"
            case loop_events.Superseded(number=number):
                return f"{number}: given up, the source was saved again"
            case loop_events.Finished(number=number, iteration=iteration) if iteration is not None:
                return f"{number}: {iteration.outcome}, {seconds} from the save"
        return None

    def _time(self, number: int, passed: bool) -> str:
        timing = self._timed
        if timing is None:
            return ""
        simulated = " (simulated)" if "simulated" in timing.timer else ""
        if not passed:
            return f"\n{number}: its time of {duration(timing.variant_median_ns)}{simulated} does not count"
        return (
            f"\n{number}: {duration(timing.variant_median_ns)}{simulated}, captured kernel "
            f"{duration(timing.baseline_median_ns)}: {timing.ratio:.3f}x {timing.speed}"
        )


@click.command()
@click.argument("directory", type=PATH, metavar="DIR")
@click.option("--once", is_flag=True, help="One attempt with the source as it stands; exit with its verdict.")
@tolerance_options
@click.option("--exact", is_flag=True, help="Forget the tolerance and the types that DIR remembers.")
@limit_option
@device_option
@json_option
def command(
    directory: str, once: bool, exact: bool, limit_s: float, device: str | None, as_json: bool, **options: Any
) -> Any:
    """Rebuild, time and validate the reproducer in DIR whenever its source is saved: a line a step.

    --atol, --rtol, --ulp and --dtype are remembered in DIR, for later runs and the terminal UI.

    Ends by ctrl-C, with exit code 0 whatever the attempts gave. With --once the exit code is the attempt's: 0
    passed, 1 FAIL, 2 it does not build or does not fit the capture, 3 INCONCLUSIVE, 4 no device, or too
    little memory or too few file descriptors, 5 no room on the disk. Where a file is saved while it is
    compiled, that attempt is superseded and another one made. With --json the one document, of all attempts,
    is printed at the end.
    """
    opened = open_capture(directory)
    judging = _judging(Path(directory), exact, options, opened.capture)
    documents: list[dict[str, Any]] = []
    printing = threading.Lock()
    lines = Lines()

    def on_event(event: loop_events.Event) -> None:
        with printing:
            if isinstance(event, loop_events.Finished) and event.iteration is not None:
                documents.append({"number": event.number, **event.iteration.document})
            if isinstance(event, loop_events.Validated) and event.validation is not None:
                for warning in event.validation.document.get("warnings", ()):
                    note(f"{event.number}: {warning}")
            text = lines.line(event)
            if text is not None:
                (note if as_json else say)(text)
                sys.stdout.flush()

    if judging.text:
        note(f"results are judged with {judging.text} (remembered in {directory}; --exact forgets it)")
    interrupted = False
    with open_loop(directory, on_event, device=device, limit_s=limit_s) as loop:
        try:
            with interruptible():
                if once:
                    loop.bench.prepare()
                    loop.attempt()
                else:
                    loop.run()
        except KeyboardInterrupt:  # Interrupted, or what the file watcher makes of it
            interrupted = True
    if as_json:
        emit_json({"schema": SCHEMA, "directory": directory, "iterations": documents})
    if interrupted:
        note("stopped")
        by_hand = interrupted_by() in (0, signal.SIGINT)
        return 0 if by_hand and not once else Interrupted.exit_code
    return _exit_code(documents[-1] if documents else {}) if once else 0


def _judging(directory: Path, exact: bool, options: dict[str, Any], capture: Capture) -> Judging:
    """How results are judged from now on: what is remembered, with what was given."""
    given = options | {"dtypes": parse_dtypes(options["dtypes"])}
    if not exact and not given["dtypes"] and all(v is None for n, v in given.items() if n != "dtypes"):
        return remembered(directory)
    judging = changed(EXACTLY if exact else remembered(directory), given)
    CompileFile.read(directory)  # nothing is remembered where nothing can be watched
    remember(directory, judging, capture)
    return judging


def _exit_code(attempt: dict[str, Any]) -> int:
    """Of one attempt, as `validate` would end."""
    if attempt.get("validation", {}).get("verdict") == INCONCLUSIVE:
        return InconclusiveError.exit_code
    code = attempt.get("error", {}).get("exit_code", InconclusiveError.exit_code)
    return int(_OUTCOME_CODES.get(str(attempt.get("outcome")), code))
