"""What arguments may hold, said where they are read: paths that name something, numbers that are finite."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from kerncap.core.program.limits import MOST_SECONDS, too_long

F = TypeVar("F", bound=Callable[..., Any])
MOST_ITERATIONS = 1_000_000


def PATH(text: str) -> str:
    """A path that names something; an empty one would be taken for the current directory."""
    if not text:
        raise click.BadParameter("an empty path names nothing")
    return text


class Finite(click.FloatRange):
    """A number from `least` on; neither infinite nor "nan", which every comparison lets through."""

    name = "number"

    def __init__(self, least: float = 0.0, *, open_below: bool = False) -> None:
        super().__init__(min=least, min_open=open_below)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number", param, ctx)
        return number


class Seconds(Finite):
    """Of a limit; no more than the clocks and the devices' drivers take, in whatever unit they count."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if number > MOST_SECONDS:
            self.fail(too_long(str(value)), param, ctx)
        return number


NOT_NEGATIVE = Finite()
SECONDS = Seconds(open_below=True)
LIMIT_S = 60.0  # of one dispatch


def limit_option(function: F) -> F:
    """Adds --timeout, the limit of one dispatch."""
    return click.option(
        "--timeout",
        "limit_s",
        type=SECONDS,
        metavar="S",
        default=LIMIT_S,
        help=f"End a dispatch that takes longer than S seconds: a FAIL (default {LIMIT_S:g}).",
    )(function)


def tolerance_options(function: F) -> F:
    """Adds --atol, --rtol, --ulp and --dtype; None where one is not given."""
    for option in (
        click.option(
            "--dtype",
            "dtypes",
            multiple=True,
            metavar="WHERE=TYPE",
            help="What a region (its number, or an address in it) holds, such as 3=f32; may be given again.",
        ),
        click.option(
            "--ulp",
            type=click.IntRange(0, 1_000_000),
            help="Or this many units in the last place (default 0).",
        ),
        click.option("--rtol", type=NOT_NEGATIVE, help="Relative tolerance of floats (default 0)."),
        click.option("--atol", type=NOT_NEGATIVE, help="Absolute tolerance of floats (default 0)."),
    ):
        function = option(function)
    return function
