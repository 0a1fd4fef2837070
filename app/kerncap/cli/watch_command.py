"""`kerncap watch`."""

from __future__ import annotations

import sys
import threading
from typing import Any

import click

from kerncap.cli.output import device_option, duration, emit_json, json_option, note, say
from kerncap.cli.parameters import PATH
from kerncap.core import session as loop_events
from kerncap.core.captures import open_capture
from kerncap.core.errors import Interrupted
from kerncap.core.interrupts import interruptible

SCHEMA = "kerncap-watch/1"
_OUTCOME_CODES = {"passed": 0, "failed": 1, "build-failed": 2, "error": 3}


class Lines:
    """The loop's events as lines. A time is shown with its verdict only: a wrong result has no speedup."""

    def __init__(self) -> None:
        self._timed: loop_events.Timing | None = None

    def line(self, event: loop_events.Event) -> str | None:
        """One step of the loop as text; None for what needs none."""
        seconds = f"{event.seconds:.2f} s"
        match event:
            case loop_events.Watching(files=files):
                return f"watching {', '.join(files)}; ready after {seconds}"
            case loop_events.Saved(number=number, files=files):
                self._timed = None
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
                return f"{number}: {validation.verdict}: {validation.summary} ({seconds})" + self._time(
                    number, validation.passed
                )
            case loop_events.Failed(number=number, step=step, message=message):
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
@device_option
@json_option
def command(directory: str, once: bool, device: str | None, as_json: bool) -> Any:
    """Rebuild, time and validate the reproducer in DIR whenever its source is saved: a line a step.

    Ends by ctrl-C. With --json the one document, of all attempts, is printed at the end.
    """
    open_capture(directory)
    documents: list[dict[str, Any]] = []
    printing = threading.Lock()
    lines = Lines()

    def on_event(event: loop_events.Event) -> None:
        with printing:
            if isinstance(event, loop_events.Finished) and event.iteration is not None:
                documents.append({"number": event.number, **event.iteration.document})
            text = lines.line(event)
            if text is not None:
                (note if as_json else say)(text)
                sys.stdout.flush()

    interrupted = False
    with loop_events.open_loop(directory, on_event, device=device) as loop:
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
        return Interrupted.exit_code
    outcome = str(documents[-1].get("outcome")) if documents else "error"
    return _OUTCOME_CODES.get(outcome, 3) if once else 0
