"""The arguments of a captured kernel as a person reads them, from the manifest."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from kerncap.core.capture import manifest
from kerncap.core.code.names import one_line
from kerncap.core.errors import DamagedCaptureError

COLUMNS = ("offset", "bytes", "kind", "argument", "value")


def argument_rows(document: Mapping[str, Any]) -> list[list[str]]:
    """A row an argument, as COLUMNS says."""
    rows = []
    for argument in document["arguments"]:
        pointer = argument.get("pointer")
        value = (
            f"{pointer['address']} (region {pointer['region']} + {pointer['offset']})"
            if pointer
            else _value(argument)
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


def _value(argument: Mapping[str, Any]) -> str:
    """A by-value argument: the integer that its bytes spell, and at four bytes the float; else the bytes."""
    try:
        raw = bytes.fromhex(argument["value"])
    except ValueError:
        raise DamagedCaptureError(f"{manifest.NAME}: an argument's value is not hexadecimal") from None
    if len(raw) not in (1, 2, 4, 8):
        return f"0x{raw.hex()}" if raw else "-"
    text = str(int.from_bytes(raw, "little", signed=True))
    if len(raw) == 4 and 0x01000000 <= int.from_bytes(raw, "little") & 0x7FFFFFFF < 0x7F800000:
        text += f" (as a float {struct.unpack('<f', raw)[0]:g})"
    return text
