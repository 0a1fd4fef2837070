"""Values of the small floating-point formats as float64, from their definitions."""

from __future__ import annotations

import numpy as np


def float8(bits: np.ndarray, mantissa_bits: int, bias: int) -> np.ndarray:
    """FNUZ: no infinity, one zero, 0x80 is the NaN."""
    b = bits.astype(np.int64)
    exponent, mantissa = (b & 0x7F) >> mantissa_bits, b & ((1 << mantissa_bits) - 1)
    scale = 1 << mantissa_bits
    magnitude = np.where(
        exponent > 0,
        (scale + mantissa) / scale * 2.0 ** (exponent - bias),
        mantissa / scale * 2.0 ** (1 - bias),
    )
    return np.where(b == 0x80, np.nan, np.where(b & 0x80, -magnitude, magnitude))


def fp8(bits: np.ndarray) -> np.ndarray:
    return float8(bits, 3, 8)


def bf8(bits: np.ndarray) -> np.ndarray:
    return float8(bits, 2, 16)


def bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def f16(bits: np.ndarray) -> np.ndarray:
    return bits.astype(np.uint16).view(np.float16).astype(np.float64)
