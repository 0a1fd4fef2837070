"""`kerncap replay`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kerncap.cli.output import device_option, emit_json, json_option, note, path_text, plain_table, say
from kerncap.cli.parameters import MOST_ITERATIONS, PATH, limit_option
from kerncap.core.code.names import one_line
from kerncap.core.errors import UsageError
from kerncap.core.loop.captures import open_capture
from kerncap.core.units import duration, many

if TYPE_CHECKING:
    from kerncap.core.loop.candidates import CandidatesResult


def _counters(
    directory: str, hsaco: str | None, cache: str, limit_s: float, device: str | None, as_json: bool
) -> int:
    from kerncap.core.replay.counters import counters

    result = counters(directory, hsaco, cache, device=device, limit_s=limit_s)
    if as_json:
        emit_json(result.to_json())
        return 0
    say(f"{one_line(result.kernel)} on {result.device}, one run under {result.tool}, cache {result.cache}")
    if result.variant is not None:
        say(f"variant {path_text(result.variant)}")
    rows = [[c.section, one_line(c.name), c.value, c.unit] for c in result.counters]
    say(plain_table(["section", "counter", "value", "unit"], rows, left=(0, 1, 3)))
    return 0


def _candidates(
    directory: str, cache: str, iterations: int | None, limit_s: float, device: str | None, as_json: bool
) -> int:
    from kerncap.core.loop.candidates import (
        HEADINGS,
        LEFT,
        CandidateResult,
        cached_text,
        candidates,
        cells,
        edited_text,
    )

    def show(row: CandidateResult) -> None:
        note(f"{row.configuration}: {row.problem or row.verdict}")

    result = candidates(
        directory, device=device, cache=cache, iterations=iterations, limit_s=limit_s, on_result=show
    )
    if as_json:
        emit_json(result.to_json())
        return _end_of(result)
    simulated = " (simulated)" if result.simulated else ""
    say(f"{one_line(result.kernel)} on {result.device}, {many(len(result.rows), 'configuration')}{simulated}")
    if result.edited:
        say(edited_text(result.edited))
    if result.cached:
        say(cached_text(any(row.program_ms is not None for row in result.rows)))
    say(plain_table(HEADINGS, [cells(row) for row in result.rows], left=LEFT))
    if not result.tuned:
        note("the capture was made before the autotuner had chosen: --dispatch N takes a later one")
    return _end_of(result)


def _end_of(result: CandidatesResult) -> int:
    """The exit code: of what kept all configurations from being tried, which is said."""
    if result.failure is None:
        return 0
    note(result.failure.message)
    return result.failure.exit_code


@click.command()
@click.argument("directory", type=PATH, metavar="DIR")
@click.option(
    "--hsaco",
    "--variant",
    "hsaco",
    type=PATH,
    metavar="FILE",
    help="Run the kernel of this code object instead of the captured one.",
)
@click.option(
    "--iterations",
    type=click.IntRange(1, MOST_ITERATIONS),
    metavar="N",
    help="Time N runs (default: until it is steady).",
)
@click.option(
    "--cache", type=click.Choice(["warm", "cold"]), default="warm", help="Before each run (default warm)."
)
@click.option("--dump", type=PATH, metavar="DIR", help="Write the memory after the last run to DIR.")
@click.option(
    "--counters",
    "count",
    is_flag=True,
    help="Run it once under the device's profiler (ncu, rocprofv3) and show its hardware counters.",
)
@click.option(
    "--candidates",
    "tried",
    is_flag=True,
    help="Time and validate a Triton kernel under each configuration that the program's autotuner tried.",
)
@limit_option
@device_option
@json_option
def command(
    directory: str,
    hsaco: str | None,
    iterations: int | None,
    cache: str,
    dump: str | None,
    count: bool,
    tried: bool,
    limit_s: float,
    device: str | None,
    as_json: bool,
) -> Any:
    """Put the captured memory back, run the kernel alone, and time it."""
    open_capture(directory)
    if tried:
        if hsaco is not None or dump is not None or count:
            raise UsageError("--candidates compiles what it runs: it takes no --hsaco, --dump or --counters")
        return _candidates(directory, cache, iterations, limit_s, device, as_json)
    if count:
        if iterations is not None or dump is not None:
            raise UsageError("--counters runs the kernel once: it takes neither --iterations nor --dump")
        return _counters(directory, hsaco, cache, limit_s, device, as_json)
    from kerncap.core.replay.replay import replay

    result = replay(
        directory,
        hsaco=hsaco,
        iterations=iterations,
        cache=cache,
        dump=dump,
        device=device,
        limit_s=limit_s,
    )
    document = result.to_json()
    if as_json:
        emit_json(document)
        return 0
    simulated = "simulated" in str(document["timer"])
    low, high = document["ci95_ns"]
    say(
        f"{one_line(document['kernel'])} on {document['device']}, {many(document['iterations'], 'run')}, "
        f"cache {document['cache']}"
    )
    if document["variant"] is not None:
        say(f"  variant {path_text(document['variant'])} (its result is not checked: kerncap validate)")
    say(f"  median  {duration(document['median_ns'])}" + (" (simulated)" if simulated else ""))
    say(f"  95 %    {duration(low)} to {duration(high)}")
    say(f"  min     {duration(document['min_ns'])}   max {duration(document['max_ns'])}")
    say(f"  timer   {document['timer']}")
    if document.get("output"):
        say(f"  memory  {document['output']}")
    for warning in document.get("warnings", ()):
        note(str(warning))
    return 0
