"""tests/CASES.md against the tests that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROW = re.compile(r"\| ([CRS]\d+) \| .+ \| (.+) \|")
ROWS = [
    match.groups() for line in (TESTS / "CASES.md").read_text().splitlines() if (match := ROW.fullmatch(line))
]


def test_every_row_is_there() -> None:
    wanted = [f"C{n}" for n in (*range(1, 15), 17)] + [f"R{n}" for n in range(1, 11)]
    assert [row for row, _ in ROWS] == [*wanted, *(f"S{n}" for n in range(1, 7))]


@pytest.mark.parametrize(("row", "files"), ROWS)
def test_its_tests_name_it(row: str, files: str) -> None:
    for name in files.split(", "):
        text = (TESTS.parent / name).read_text()
        assert re.search(rf"\b{row}\b", text), f"{name} names no {row}"
        assert "def test_" in text
