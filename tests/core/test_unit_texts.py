"""Sizes and times as a person reads them: one system of units, in everything that is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kerncap
from kerncap.core.units import duration, many, size, times, were
from support.texts import shown_strings

BINARY = re.compile(r"\b[KMGT]iB\b")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (13688, "13.7 KB"),
        (2.5e6, "2.5 MB"),
        (4e12, "4000.0 GB"),
    ],
)
def test_sizes_are_decimal(value: float, text: str) -> None:
    assert size(value) == text


@pytest.mark.parametrize(
    ("ns", "text"), [(0, "0 ns"), (999, "999 ns"), (7180, "7.180 us"), (2e6, "2.000 ms"), (3e9, "3.000 s")]
)
def test_times(ns: float, text: str) -> None:
    assert duration(ns) == text


def test_nothing_that_is_shown_has_binary_units() -> None:
    package = Path(kerncap.__file__).parent
    found = [
        (path.name, text)
        for path in package.rglob("*.py")
        for text in shown_strings(path)
        if BINARY.search(text)
    ]
    assert found == []


def test_one_is_no_many() -> None:
    assert [many(n, "dispatch") for n in (0, 1, 2)] == ["0 dispatches", "1 dispatch", "2 dispatches"]
    assert many(1, "more file") == "1 more file"
    assert many(3, "process") == "3 processes"
    assert [times(n) for n in (1, 2)] == ["once", "2 times"]
    assert [were(n) for n in (1, 2)] == ["was", "were"]
