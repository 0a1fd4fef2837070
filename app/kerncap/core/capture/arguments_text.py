"""The arguments of a captured kernel as a person reads them, from the manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kerncap.core.capture import manifest
from kerncap.core.capture.records import Capture
from kerncap.core.code.dwarf import Parameter, parameters_by_kernel
from kerncap.core.code.names import one_line
from kerncap.core.code.reading import read_code_object
from kerncap.core.code.values import value_text
from kerncap.core.errors import DamagedCaptureError, KerncapError

COLUMNS = ("offset", "bytes", "kind", "argument", "value")


def argument_rows(document: Mapping[str, Any], parameters: Sequence[Parameter] = ()) -> list[list[str]]:
    """A row an argument, as COLUMNS says; `parameters` as `parameters_of` has them, for values by field."""
    rows = []
    arguments = document["arguments"]
    known = parameters if len(parameters) == len(arguments) else [None] * len(arguments)
    for argument, parameter in zip(arguments, known, strict=True):
        pointer = argument.get("pointer")
        value = (
            f"{pointer['address']} (region {pointer['region']} + {pointer['offset']})"
            if pointer
            else _value(argument, parameter)
        )
        rows.append(
            [
                str(argument["offset"]),
                str(argument["bytes"]),
                argument["kind"],
                one_line(argument["name"]) or "-",
                value,
            ]
        )
    return rows


def parameters_of(capture: Capture) -> Sequence[Parameter]:
    """What debug information says of the captured kernel's parameters; none where it says nothing."""
    try:
        return parameters_by_kernel(read_code_object(capture.code_path())).get(capture.dispatch.symbol, ())
    except KerncapError:
        return ()


def _value(argument: Mapping[str, Any], parameter: Parameter | None) -> str:
    """An argument that was passed by value."""
    try:
        raw = bytes.fromhex(argument["value"])
    except ValueError:
        raise DamagedCaptureError(f"{manifest.NAME}: an argument's value is not hexadecimal") from None
    return value_text(raw, parameter.scalars, parameter.type_name) if parameter else value_text(raw, ())
