"""How the variants of a reproducer are judged in the edit loop: the tolerance, and the types that a person
declared. Remembered in the reproducer, so that `kerncap watch` and the workbench agree.

Of whoever sets it nothing more is needed than `remember`: every comparison of the edit loop reads it anew.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerncap.core.capture.records import Capture
from kerncap.core.code.shape import misshapen
from kerncap.core.errors import UsageError
from kerncap.core.files import unread, write_json
from kerncap.core.judge.compare import Tolerance
from kerncap.core.judge.dtypes import type_map

NAME = "judging.json"
SCHEMA = "kerncap-judging/1"
_SHAPE = {"schema": str, "atol": (float, int), "rtol": (float, int), "ulp": int, "dtypes": dict}


@dataclass(frozen=True)
class Judging:
    """A float passes within `atol` + `rtol` * |expected|, or within `ulp` units in the last place.

    `dtypes` are (region number or "0x..." address, type) pairs, as `--dtype` has them. As made: exact.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulp: int = 0
    dtypes: tuple[tuple[str, str], ...] = ()

    @property
    def tolerance(self) -> Tolerance:
        return Tolerance(self.atol, self.rtol, self.ulp)

    @property
    def declared(self) -> dict[int | str, str]:
        """`dtypes` as `validate` takes it."""
        return {int(where) if where.isdecimal() else where: name for where, name in self.dtypes}

    @property
    def text(self) -> str:
        """ "rtol 1e-06, 3=f32"; empty where nothing is set."""
        parts = [self.tolerance.text] if self.tolerance.given else []
        return ", ".join([*parts, *(f"{where}={name}" for where, name in self.dtypes)])

    def to_json(self) -> dict[str, Any]:
        """The document of judging.json, without its schema."""
        return {"atol": self.atol, "rtol": self.rtol, "ulp": self.ulp, "dtypes": dict(self.dtypes)}


EXACTLY = Judging()


def parse_dtypes(words: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """ "3=f32" or "0x7f00=f32", as pairs. Raises UsageError for what is neither."""
    found: dict[str, str] = {}
    for word in words:
        where, equals, name = word.partition("=")
        if not equals or not name or not (where.isdecimal() or where.lower().startswith("0x")):
            raise UsageError(f"--dtype {word}: it is REGION=TYPE or 0xADDRESS=TYPE, such as 3=f32")
        found[where] = name
    return tuple(found.items())


def parse_judging(text: str) -> Judging:
    """`Judging.text` read back: "rtol 1e-6, ulp 2, 3=f32"; exact for nothing. Raises UsageError."""
    numbers: dict[str, float] = {}
    dtypes: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.replace("=", " ").partition(" ")
        if name in ("atol", "rtol", "ulp"):
            try:
                numbers[name] = int(value) if name == "ulp" else float(value)
            except ValueError:
                raise UsageError(f"{part}: {value.strip() or 'nothing'} is no number for {name}") from None
        elif "=" in part:
            dtypes.append(part.replace(" ", ""))
        else:
            raise UsageError(f"{part}: it is none of atol NUMBER, rtol NUMBER, ulp NUMBER, REGION=TYPE")
    return Judging(
        numbers.get("atol", 0.0), numbers.get("rtol", 0.0), int(numbers.get("ulp", 0)), parse_dtypes(dtypes)
    )


def remembered(directory: Path) -> Judging:
    """How the reproducer in `directory` is judged; exactly where nothing is remembered.

    Raises UsageError where the file is not right: a comparison that was to be exact must not become
    another one, nor the other way round.
    """
    path = directory / NAME
    try:
        row = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return EXACTLY
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, unread(error)) from error
    problem = misshapen(row, _SHAPE)
    if problem:
        raise _damaged(path, problem)
    if row["schema"] != SCHEMA:
        raise _damaged(path, f"schema {row['schema']!r}; this kerncap reads {SCHEMA!r}")
    if not all(math.isfinite(row[name]) and row[name] >= 0 for name in ("atol", "rtol", "ulp")):
        raise _damaged(path, "a tolerance is no number from 0 on")
    try:
        dtypes = parse_dtypes(f"{where}={name}" for where, name in row["dtypes"].items())
    except UsageError as error:
        raise _damaged(path, error.message) from error
    return Judging(float(row["atol"]), float(row["rtol"]), row["ulp"], dtypes)


def _damaged(path: Path, problem: str) -> UsageError:
    return UsageError(f"{path}: {problem}. Remove it to compare exactly.", file=str(path))


def remember(directory: Path, judging: Judging, capture: Capture | None = None) -> None:
    """Writes DIR/judging.json; the next comparison goes by it. Nothing is left of it where all is exact.

    Raises UsageError where a number is none, a type is not known, or the capture has no such region.
    """
    if not all(math.isfinite(v) and v >= 0 for v in (judging.atol, judging.rtol, judging.ulp)):
        raise UsageError("tolerances are not negative")
    if judging.dtypes:
        from kerncap.core.capture.reading import find_capture, read_capture

        parse_dtypes(f"{where}={name}" for where, name in judging.dtypes)
        type_map(capture or read_capture(find_capture(directory)), judging.declared)
    if judging == EXACTLY:
        (directory / NAME).unlink(missing_ok=True)
        return
    write_json(directory / NAME, {"schema": SCHEMA, **judging.to_json()})


def changed(judging: Judging, given: Mapping[str, Any]) -> Judging:
    """`judging` with the options that were given (None: not given); types are added to those known."""
    named = {name: value for name, value in given.items() if name != "dtypes" and value is not None}
    dtypes = tuple({**dict(judging.dtypes), **dict(given.get("dtypes") or ())}.items())
    return Judging(**{"atol": judging.atol, "rtol": judging.rtol, "ulp": judging.ulp, **named}, dtypes=dtypes)
