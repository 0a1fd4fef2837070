"""The bounded record of where and by how much elements differ."""

from __future__ import annotations

import numpy as np
import pytest

from kerncap.core.judge.mismatches import (
    MOST_CELLS,
    MOST_ELEMENTS,
    ErrorMap,
    Mismatches,
    decade,
    relative_error,
)


def bits(values: list[float], kind: str = "<f4") -> np.ndarray:
    array = np.asarray(values, kind)
    return array.view(f"<u{array.dtype.itemsize}")


def test_relative_error_of_floats() -> None:
    nan, inf = float("nan"), float("inf")
    expected = bits([1.0, 2.0, 0.0, 0.0, nan, 1.0, inf, inf, 3e38])
    actual = bits([1.5, 2.0, -0.0, 1.0, nan, nan, inf, -inf, -3e38])
    found = relative_error(expected, actual, "f32")
    assert found[:4].tolist() == [0.5, 0, 0, inf]
    assert found[4:].tolist() == [0, inf, 0, inf, 2]
    huge = relative_error(bits([1.7e308], "<f8"), bits([-1.7e308], "<f8"), "f64")
    assert huge.tolist() == [2.0]  # the difference itself is beyond the range


def test_relative_error_of_integers_and_of_what_is_no_number() -> None:
    assert relative_error(bits([-4], "<i4"), bits([4], "<i4"), "i32").tolist() == [2.0]
    assert relative_error(bits([100], "<u2"), bits([99], "<u2"), "u16").tolist() == pytest.approx([0.01])
    assert relative_error(bits([7], "<u8"), bits([8], "<u8"), "pointer").tolist() == [float("inf")]


def test_errors_over_one_are_listed_as_they_are_and_bounded_in_histogram_and_map() -> None:
    found = Mismatches()
    addresses = np.array([0, 4, 8], np.uint64)
    errors = np.array([0.5, 40.0, np.inf])
    found.add(addresses, errors, np.ones(3, bool), lambda i: {"address": hex(int(addresses[i]))})
    assert [e["relative"] for e in found.elements] == [0.5, 40.0, "inf"]
    assert found.ordered_histogram() == {"1e-1": 1, "1": 2}
    assert [error for _, error in found.map.to_json(0)["cells"]] == [0.5, 1.0, 1.0]


@pytest.mark.parametrize(
    ("error", "name"), [(1.0, "1"), (0.5, "1e-1"), (1e-7, "1e-7"), (3e-7, "1e-7"), (1e-30, "1e-16")]
)
def test_decades(error: float, name: str) -> None:
    assert decade(error) == name


def test_one_bad_element_among_a_billion_bytes_stays_in_the_map() -> None:
    found = ErrorMap()
    found.add(np.array([0x10000], np.uint64), np.array([1e-6]))
    found.add(np.array([0x10000 + (1 << 30)], np.uint64), np.array([0.5]))
    found.add(np.array([0x10000 + (1 << 29)], np.uint64), np.array([0.25]))
    document = found.to_json(0x10000)
    assert len(found.cells) <= MOST_CELLS
    assert [error for _, error in document["cells"]] == [1e-6, 0.25, 0.5]
    for (at, _), true in zip(document["cells"], [0, 1 << 29, 1 << 30], strict=True):
        assert at <= true < at + document["cell_bytes"]


@pytest.mark.parametrize("seed", range(5))
def test_the_map_is_the_maximum_whatever_the_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    addresses = (rng.choice(1 << 20, 3000, replace=False) * 4 + 0x7F0000000000).astype(np.uint64)
    errors = rng.random(3000)
    found = ErrorMap()
    for part in np.array_split(rng.permutation(3000), 7):
        found.add(addresses[part], errors[part])
    whole = ErrorMap()
    whole.add(addresses, errors)
    assert (found.start, found.shift) == (whole.start, whole.shift)
    assert found.cells.tolist() == whole.cells.tolist()
    for at, error in found.to_json(0)["cells"]:
        inside = (addresses >= at) & (addresses < at + (1 << found.shift))
        assert error == pytest.approx(errors[inside].max(), rel=1e-2)


def test_elements_are_the_lowest_and_bounded() -> None:
    found = Mismatches()

    def add(first: int, count: int) -> None:
        addresses = (np.arange(count, dtype=np.uint64) * 4 + first).astype(np.uint64)
        fails = np.arange(count) % 2 == 0
        found.add(addresses, np.full(count, 0.1), fails, lambda i: {"address": hex(int(addresses[i]))})

    add(0x100000, 2000)
    add(0x1000, 20)
    add(0x900000, 20)
    places = [int(e["address"], 16) for e in found.elements]
    assert len(places) == MOST_ELEMENTS
    assert places == sorted(places)
    assert places[:10] == [0x1000 + 8 * i for i in range(10)]
    assert found.differing == 2040
    assert found.ordered_histogram() == {"1e-1": 2040}
