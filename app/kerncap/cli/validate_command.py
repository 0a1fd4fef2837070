"""`kerncap validate`."""

from __future__ import annotations

from typing import Any

import click

from kerncap.cli.output import device_option, emit_json, json_option, note, plain_table, say, size
from kerncap.cli.parameters import NOT_NEGATIVE, PATH
from kerncap.core.captures import open_capture

_MOST_REGIONS = 20


def show(document: dict[str, Any]) -> None:
    """The verdict for a person."""
    reason = f": {document['reason']}" if document.get("reason") else ""
    say(f"{document['verdict']}{reason}")
    say(f"  against   {document['against']}")
    say(
        f"  compared  {size(document['compared_bytes'])}; written {size(document['written_bytes'])}, "
        f"masked {size(document['masked_bytes'])}, skipped {size(document['skipped_bytes'])}; "
        f"{document['seconds']:.2f} s"
    )
    bad = [region for region in document["regions"] if region["mismatches"]]
    if not bad:
        return
    headings = ["address", "bytes", "dtype", "differ", "max abs", "max rel", "max ulp", "first"]
    rows = []
    for region in bad[:_MOST_REGIONS]:
        values = [
            region[key]
            for key in ("address", "bytes", "dtype", "mismatches", "max_abs", "max_rel", "max_ulp", "first")
        ]
        rows.append(["-" if v is None else f"{v:.4g}" if isinstance(v, float) else str(v) for v in values])
    say(plain_table(headings, rows))
    if len(bad) > _MOST_REGIONS:
        say(f"and {len(bad) - _MOST_REGIONS} more regions")


@click.command()
@click.argument("directory", type=PATH, metavar="DIR")
@click.option(
    "--hsaco",
    type=PATH,
    metavar="FILE",
    help="The variant's code object (default: the captured kernel itself).",
)
@click.option("--smoke", is_flag=True, help="Only run it.")
@click.option(
    "--strict", is_flag=True, help="Compare every other captured byte too: nothing else may change."
)
@click.option("--atol", type=NOT_NEGATIVE, default=0.0, help="Absolute tolerance of floats (default 0).")
@click.option("--rtol", type=NOT_NEGATIVE, default=0.0, help="Relative tolerance of floats (default 0).")
@click.option(
    "--ulp", type=click.IntRange(0), default=0, help="Or this many units in the last place (default 0)."
)
@click.option("--bitwise", is_flag=True, help="-0 and +0 differ, and so do two NaNs of other bits.")
@device_option
@json_option
def command(
    directory: str,
    hsaco: str | None,
    smoke: bool,
    strict: bool,
    atol: float,
    rtol: float,
    ulp: int,
    bitwise: bool,
    device: str | None,
    as_json: bool,
) -> Any:
    """Compare what a variant writes with what the program's own run wrote. Exit 0 passed, 1 FAIL, 3
    INCONCLUSIVE.
    """
    if smoke and strict:
        raise click.UsageError("--smoke and --strict exclude each other")
    open_capture(directory)
    from kerncap.core.validate import validate

    mode = "smoke" if smoke else "strict" if strict else "default"
    result = validate(
        directory, hsaco=hsaco, mode=mode, atol=atol, rtol=rtol, ulp=ulp, bitwise=bitwise, device=device
    )
    document = result.to_json()
    if as_json:
        emit_json(document)
    else:
        show(document)
        for warning in document.get("warnings", ()):
            note(str(warning))
    return result.exit_code
