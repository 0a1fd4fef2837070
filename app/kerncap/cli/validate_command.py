"""`kerncap validate`."""

from __future__ import annotations

from typing import Any

import click

from kerncap.cli.output import device_option, emit_json, json_option, note, path_text, plain_table, say
from kerncap.cli.parameters import PATH, limit_option, tolerance_options
from kerncap.core.code.names import one_line
from kerncap.core.judge.wording import element_text
from kerncap.core.loop.captures import open_capture
from kerncap.core.units import many, size

_MOST_REGIONS = 20


def show(document: dict[str, Any]) -> None:
    """The verdict for a person."""
    reason = f": {document['reason']}" if document.get("reason") else ""
    say(f"{document['verdict']}{reason}")
    say(f"  kernel    {one_line(document['kernel'])}")
    if document["variant"] is not None:
        say(f"  variant   {path_text(document['variant'])}")
    if document["mode"] == "smoke":
        say(f"  judged    whether it ends, and without a fault; {document['seconds']:.2f} s")
        say("  open      whether it writes the right values, to the right places: --smoke compares nothing")
        return
    say(f"  against   {document['against']}")
    masked = size(document["masked_bytes"])
    if document["masked_bytes"]:
        masked += f" ({100 * document['masked_share']:.3g} % of what is written)"
    say(
        f"  compared  {size(document['compared_bytes'])}; written {size(document['written_bytes'])}, "
        f"masked {masked}, skipped {size(document['skipped_bytes'])}; {document['seconds']:.2f} s"
    )
    if document["module_bytes"]:
        say(
            f"  left out  {size(document['module_bytes'])} of the captured code object's own data: the "
            "variant has its own, whose variables are compared by name"
        )
    bad = [region for region in document["regions"] if region["mismatches"]]
    if not bad:
        return
    headings = ["address", "bytes", "dtype", "by", "differ", "max abs", "max rel", "max ulp", "first"]
    keys = ("address", "bytes", "dtype", "dtype_source", "mismatches", "max_abs", "max_rel", "max_ulp")
    rows = []
    for region in bad[:_MOST_REGIONS]:
        first = element_text(region["first"]) if region["first"] is not None else None
        if region["id"] == 0:  # what lies there in a replay says nothing
            region = {**region, "bytes": "outside"}
            first = "a store outside of every captured region"
        values = [*(region[key] for key in keys), first]
        rows.append(["-" if v is None else f"{v:.4g}" if isinstance(v, float) else str(v) for v in values])
    say(plain_table(headings, rows))
    if len(bad) > _MOST_REGIONS:
        say(f"and {many(len(bad) - _MOST_REGIONS, 'more region')}")


@click.command()
@click.argument("directory", type=PATH, metavar="DIR")
@click.option(
    "--hsaco",
    "--variant",
    "hsaco",
    type=PATH,
    metavar="FILE",
    help="The variant's code object (default: the captured kernel itself).",
)
@click.option("--smoke", is_flag=True, help="Only run it.")
@click.option(
    "--strict", is_flag=True, help="Compare every other captured byte too: nothing else may change."
)
@tolerance_options
@click.option("--bitwise", is_flag=True, help="-0 and +0 differ, and so do two NaNs of other bits.")
@limit_option
@device_option
@json_option
def command(
    directory: str,
    hsaco: str | None,
    smoke: bool,
    strict: bool,
    atol: float | None,
    rtol: float | None,
    ulp: int | None,
    bitwise: bool,
    dtypes: tuple[str, ...],
    limit_s: float,
    device: str | None,
    as_json: bool,
) -> Any:
    """Compare what a variant writes with what the program's own run wrote. Exit 0 passed, 1 FAIL, 3
    INCONCLUSIVE.
    """
    if smoke and strict:
        raise click.UsageError("--smoke and --strict exclude each other")
    if smoke and (atol or rtol or ulp or bitwise or dtypes):
        raise click.UsageError("--smoke compares nothing: it takes no tolerance, --bitwise or --dtype")
    open_capture(directory)
    from kerncap.core.judge.validate import validate
    from kerncap.core.loop.judging import Judging, parse_dtypes

    mode = "smoke" if smoke else "strict" if strict else "default"
    result = validate(
        directory,
        hsaco=hsaco,
        mode=mode,
        atol=atol or 0.0,
        rtol=rtol or 0.0,
        ulp=ulp or 0,
        bitwise=bitwise,
        device=device,
        dtypes=Judging(dtypes=parse_dtypes(dtypes)).declared,
        limit_s=limit_s,
    )
    document = result.to_json()
    if as_json:
        emit_json(document)
    else:
        show(document)
        for warning in document.get("warnings", ()):
            note(str(warning))
    return result.exit_code
