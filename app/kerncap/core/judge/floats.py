"""Bits of floating-point numbers as values, and their distance in units in the last place.

Formats: IEEE 754 binary16, binary32, binary64, bfloat16 (binary32 without its lower half), and 8 bits: OCP's
e4m3 and e5m2 (OCP 8-bit Floating Point Specification 1.0), and their fnuz variants, which have one zero, one
NaN (the bits of -0), no infinity, and a bias that is one larger.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[Any]  # unsigned integers of the format's size
Values = npt.NDArray[np.float64]

BITS = {
    "f64": np.uint64, "f32": np.uint32, "f16": np.uint16, "bf16": np.uint16,
    "e4m3": np.uint8, "e5m2": np.uint8, "e4m3fnuz": np.uint8, "e5m2fnuz": np.uint8,
}  # fmt: skip


def _eight_bits(mantissa: int, fnuz: bool) -> Values:
    """The value of each of the 256 patterns."""
    bits = np.arange(256)
    exponent = (bits & 0x7F) >> mantissa
    fraction = (bits & ((1 << mantissa) - 1)) / (1 << mantissa)
    bias = (1 << (6 - mantissa)) - 1 + fnuz
    normal = np.ldexp(1.0 + fraction, exponent - bias)
    table = np.where(exponent == 0, np.ldexp(fraction, 1 - bias), normal) * np.where(bits & 0x80, -1.0, 1.0)
    if fnuz:
        table[0x80] = np.nan
    elif mantissa == 3:
        table[[0x7F, 0xFF]] = np.nan
    else:
        table[[0x7C, 0xFC]] = np.inf, -np.inf
        table[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
    return table


_EIGHT = {
    "e4m3": _eight_bits(3, False),
    "e5m2": _eight_bits(2, False),
    "e4m3fnuz": _eight_bits(3, True),
    "e5m2fnuz": _eight_bits(2, True),
}


def values(bits: Bits, dtype: str) -> Values:
    """The numbers behind `bits`; every one of them is exact in float64. `bits` is contiguous."""
    if dtype == "f64":
        return bits.view(np.float64)
    if dtype in _EIGHT:
        return np.asarray(_EIGHT[dtype][bits])
    # A signaling NaN may not be converted in hardware without a warning; its value is NaN either way.
    with np.errstate(invalid="ignore"):
        if dtype == "f32":
            return bits.view(np.float32).astype(np.float64)
        if dtype == "f16":
            return bits.view(np.float16).astype(np.float64)
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def _ordered(bits: Bits) -> npt.NDArray[Any]:
    """Integers of the same size in the order of the numbers, neighbours one apart; both zeros are 0."""
    width = bits.dtype.itemsize * 8
    signed = bits.view(f"i{bits.dtype.itemsize}")
    sign = signed >> (width - 1)  # 0 or -1
    ordered: npt.NDArray[Any] = signed & ((1 << (width - 1)) - 1)
    ordered ^= sign
    ordered -= sign
    return ordered


def ulp_distance(a: Bits, b: Bits) -> Bits:
    """How many representable numbers lie between each pair, plus one; 0 where they are equal."""
    x, y = _ordered(a), _ordered(b)
    distance: Bits = np.maximum(x, y).view(a.dtype)
    distance -= np.minimum(x, y).view(a.dtype)  # modulo 2**width, which the true distance never reaches
    return distance
