"""tests/CASES.md against the tests that it names."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROW = re.compile(r"\| ([CRS]\d+) \| .+ \| (.+) \| (.+) \|")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
ROWS = [
    match.groups() for line in (TESTS / "CASES.md").read_text().splitlines() if (match := ROW.fullmatch(line))
]
# Beside a signature: "# R4, R5"; at the beginning of a docstring: "C9 and C11: tables".
BESIDE = re.compile(r"#\s*([CRS]\d+(?:, [CRS]\d+)*)\s*$", re.M)
AT_THE_BEGINNING = re.compile(r"[CRS]\d+(?:(?:, | and )[CRS]\d+)*(?=[:.; ])")
ONE = re.compile(r"[CRS]\d+")


@functools.cache
def functions(file: Path) -> dict[str, set[str]]:
    """The tests of a file, each with the rows that it names."""
    text = file.read_text()
    lines = text.splitlines()
    found = {}
    for node in ast.parse(text).body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
            continue
        signature = "\n".join(lines[node.lineno - 1 : node.body[0].lineno - 1]) or lines[node.lineno - 1]
        document = AT_THE_BEGINNING.match(ast.get_docstring(node) or "")
        beside = BESIDE.search(signature)
        told = f"{document[0] if document else ''} {beside[1] if beside else ''}"
        found[node.name] = set(ONE.findall(told))
    return found


def test_every_row_is_there() -> None:
    wanted = [f"C{n}" for n in range(1, 18)] + [f"R{n}" for n in range(1, 11)]
    assert [row for row, _, _ in ROWS] == [*wanted, *(f"S{n}" for n in range(1, 8))]


@pytest.mark.parametrize(("row", "whole", "parts"), ROWS)
def test_its_tests_are_there(row: str, whole: str, parts: str) -> None:
    assert NAMED.findall(whole), f"{row} has no test from end to end"
    for cell in (whole, parts):
        names = NAMED.findall(cell)
        assert len(names) == cell.count("::")
        for file, name in names:
            assert name in functions(TESTS.parent / file), f"{row}: {file} has no test {name}"


def test_what_names_a_row_is_in_it() -> None:
    told = {row: set(NAMED.findall(whole + parts)) for row, whole, parts in ROWS}
    for path in sorted(TESTS.rglob("test_*.py")):
        for name, rows in functions(path).items():
            for row in rows & told.keys():
                where = (str(path.relative_to(TESTS.parent)), name)
                assert where in told[row], f"{row} does not name {where[0]}::{name}"
