"""Arguments that were passed by value, as a person reads them: by debug information, else as numbers."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from kerncap.core.code.dwarf import Scalar
from kerncap.core.code.names import one_line

_MOST_ITEMS = 8  # of an array
_MOST_FIELDS = 32
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


def value_text(raw: bytes, scalars: Sequence[Scalar], type_name: str = "") -> str:
    """The bytes of an argument of that type. `scalars`: the numbers that debug information says it is made
    of; none where it says nothing.
    """
    if not raw:
        return "-"
    if not scalars or any(s.offset + s.size * s.count > len(raw) or not s.size for s in scalars):
        return _unknown(raw)
    if len(scalars) == 1 and not scalars[0].name:
        return _items(raw, scalars[0], type_name)
    shown = [
        f"{one_line(s.name) or f'+{s.offset}'} {_items(raw, s, type_name)}" for s in scalars[:_MOST_FIELDS]
    ]
    more = [f"… {len(scalars) - _MOST_FIELDS} more"] if len(scalars) > _MOST_FIELDS else []
    return f"{{{', '.join([*shown, *more])}}}"


def _items(raw: bytes, scalar: Scalar, type_name: str) -> str:
    def one(index: int) -> str:
        at = scalar.offset + index * scalar.size
        return _number(raw[at : at + scalar.size], scalar.encoding, type_name)

    if scalar.count == 1:
        return one(0)
    shown = [one(i) for i in range(min(scalar.count, _MOST_ITEMS))]
    return f"[{', '.join(shown)}{', …' if scalar.count > _MOST_ITEMS else ''}]"


def _number(raw: bytes, encoding: str, type_name: str) -> str:
    number = int.from_bytes(raw, "little")
    if encoding == "float" and len(raw) in _FLOATS and not (len(raw) == 2 and "bf" in type_name):
        form = _FLOATS[len(raw)]
        value = struct.unpack(form, raw)[0]
        # The shortest text that means these bytes.
        texts = (f"{value:.{digits}g}" for digits in range(6, 18))
        return next((text for text in texts if struct.pack(form, float(text)) == raw), f"{value:g}")
    if encoding == "bool":
        return {0: "false", 1: "true"}.get(number, str(number))
    if encoding == "signed":
        return str(int.from_bytes(raw, "little", signed=True))
    if encoding in ("unsigned", "char"):
        return str(number)
    return f"0x{number:x}"


def _unknown(raw: bytes) -> str:
    """A number where the bytes look like one; else the bytes."""
    if len(raw) not in (1, 2, 4, 8):
        return f"0x{raw.hex()}"
    number = int.from_bytes(raw, "little")
    signed = int.from_bytes(raw, "little", signed=True)
    if len(raw) == 8 and not -(1 << 32) < signed < 1 << 32:
        return f"0x{number:016x}"  # a double, or several numbers
    if len(raw) == 4 and 0x01000000 <= number & 0x7FFFFFFF < 0x7F800000:
        return f"{signed} (as a float {struct.unpack('<f', raw)[0]:g})"
    return str(signed)
