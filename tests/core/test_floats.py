"""Floats of 8 bits by their published values; the larger ones are numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from kerncap.core.judge import floats


@pytest.mark.parametrize(
    ("dtype", "one", "largest", "smallest", "nan"),
    [  # OCP 8-bit Floating Point Specification 1.0, table 1; the fnuz formats of AMD's CDNA 3 ISA
        ("e4m3", 0x38, (0x7E, 448.0), (0x01, 2.0**-9), 0x7F),
        ("e5m2", 0x3C, (0x7B, 57344.0), (0x01, 2.0**-16), 0x7F),
        ("e4m3fnuz", 0x40, (0x7F, 240.0), (0x01, 2.0**-10), 0x80),
        ("e5m2fnuz", 0x40, (0x7F, 57344.0), (0x01, 2.0**-17), 0x80),
    ],
)
def test_eight_bits(
    dtype: str, one: int, largest: tuple[int, float], smallest: tuple[int, float], nan: int
) -> None:
    bits = np.array([one, one | 0x80, largest[0], smallest[0], nan, 0], np.uint8)
    expected = [1.0, -1.0, largest[1], smallest[1], np.nan, 0.0]
    np.testing.assert_array_equal(floats.values(bits, dtype), expected)


def test_infinity_is_where_ieee_has_it() -> None:
    assert list(floats.values(np.array([0x7C, 0xFC], np.uint8), "e5m2")) == [np.inf, -np.inf]
