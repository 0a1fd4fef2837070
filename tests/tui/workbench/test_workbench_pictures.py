"""What the panes show, as text from pure functions, and as pictures that are kept in snapshots/.

`KERNCAP_UPDATE_SNAPSHOTS=1` writes the pictures anew; look at them before they are committed.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from svg_cells import differences
from textual import __version__ as textual_version
from workbench_stage import failing, record, workbench

from kerncap.core.judge.mismatches import ErrorMap
from kerncap.core.loop.history import present_sources
from kerncap.core.loop.iterations import Iteration
from kerncap.tui.workbench import heatmap, timing_text, validation_text
from kerncap.tui.workbench.lines import Line, clean, wrap
from kerncap.tui.workbench.model import Model, row_of

SNAPSHOTS = Path(__file__).with_name("snapshots")
DRAWN_WITH = "8.2.8"


def text(lines: list[Line]) -> str:
    return "\n".join("".join(piece[0] for piece in line) for line in lines)


def iterations(out: Path) -> None:
    """Four attempts on disk, the same in every run; the last one fails, with the source as it stands."""
    documents = [
        record(1, 7180.0),
        record(2, 6315.0),
        record(3, 0.0, "build-failed", timing={}, validation={}),
        record(4, 2390.0, "failed", validation=failing()),
    ]
    documents[2]["build"] = {
        "message": "kernel_variant.cpp does not compile.",
        "output": "kernel_variant.cpp:3:60: error: use of undeclared identifier 'm'\n    3 | if (i < m)\n",
    }
    for document in documents:
        folder = out / f"iterations/{document['number']:03d}"
        for name, content in present_sources(out).items():
            path = folder / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        (folder / "iteration.json").write_text(json.dumps(document))


@pytest.mark.skipif(textual_version != DRAWN_WITH, reason=f"pictures were drawn with Textual {DRAWN_WITH}")
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
@pytest.mark.parametrize("pane", ["timing", "validation"])
async def test_pictures(out: Path, tmp_path: Path, size: tuple[int, int], pane: str) -> None:
    iterations(out)
    async with workbench(out, size=size) as bench:
        await bench.until(lambda: bench.screen.model.ready)
        assert bench.screen.model.numbers == [1, 2, 3, 4]
        await bench.until(lambda: bench.screen.views.source._coloured is not None)
        bench.screen.table.select("2" if pane == "timing" else "4")
        await bench.pilot.press({"timing": "3", "validation": "4"}[pane])
        bench.screen.tell("")
        await bench.pilot.pause(0.3)
        svg = bench.app.export_screenshot()
    kept = SNAPSHOTS / f"{pane}-{size[0]}x{size[1]}.svg"
    if os.environ.get("KERNCAP_UPDATE_SNAPSHOTS"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(svg)
    fresh = tmp_path / kept.name
    fresh.write_text(svg)
    assert not differences(svg, kept.read_text()), f"{fresh} differs from {kept}"


def test_pictures_that_differ_are_found() -> None:
    svg = (SNAPSHOTS / "timing-80x24.svg").read_text()
    assert differences(svg, svg) == []
    assert len(differences(svg, svg.replace("IDENTICAL", "IDENTICAX"))) == 3  # the result and two rows
    assert differences(svg, re.sub(r"(-r4 \{ fill: #)[0-9a-f]{2}", r"\g<1>01", svg))


async def test_without_colour_the_map_is_in_shades(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    iterations(out)
    async with workbench(out) as bench:
        await bench.until(lambda: bench.screen.model.ready)
        await bench.pilot.press("4")
        await bench.pilot.pause()
        shown = bench.shows("validation")
        assert "▀" not in shown
        assert "█" * 32 in shown
        assert "· right" in shown


@pytest.mark.parametrize("place", [0, 4096, (1 << 30) - 8])
@pytest.mark.parametrize("height", [3, 16])
def test_one_bad_element_is_seen_at_any_scale(place: int, height: int) -> None:
    cell = 1 << 18
    grid = heatmap.pool(
        {"cell_bytes": cell, "cells": [[place // cell * cell, 1e-7]]}, [0, 1 << 30], 1 << 30, 60, height
    )
    assert grid.columns == 32
    assert len(grid.rows) <= height
    hit = [(y, x) for y, row in enumerate(grid.rows) for x, e in enumerate(row) if e > 0]
    index = place // grid.square
    assert (index // grid.columns, index % grid.columns) in hit
    assert len(hit) <= 2
    drawn = heatmap.draw(grid)
    assert all(sum(len(piece[0]) for piece in line) == grid.columns for line in drawn)


def test_a_map_of_few_elements_has_a_square_for_each() -> None:
    grid = heatmap.pool({"cell_bytes": 4, "cells": [[8, 0.5], [20, 1.0]]}, [8, 32], 1024, 40, 8)
    assert (grid.first, grid.square, grid.columns) == (8, 4, 8)
    assert grid.rows == ((0.5, 0.0, 0.0, 1.0, 0.0, 0.0, -1.0, -1.0),)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(("start", "size"), [(0, 400_000), (256, 67_108_864), (0x7F30, 1000), (48, 4)])
@pytest.mark.parametrize("width", [40, 78, 120])
def test_the_map_ends_where_the_region_does(start: int, size: int, width: int, plain: bool) -> None:
    """Cells are aligned in the address space, and squares are of whole cells: neither is the region's end."""
    found = ErrorMap()
    addresses = np.array(sorted({start, start + size // 8 * 4, start + size - 4}), np.uint64)
    found.add(addresses, np.full(len(addresses), 0.5))
    region = {
        "id": 1,
        "address": hex(start),
        "bytes": size,
        "dtype": "f32",
        "extent": [0, size],
        "mismatches": len(addresses),
        "error_map": found.to_json(start),
    }
    shown = text(validation_text.report({"regions": [region]}, selected=0, width=width, plain=plain))
    assert f"where, bytes 0 to {size}" in shown
    grid = heatmap.pool(region["error_map"], [0, size], size, width - 2, 16)
    assert grid.rows[0][0] == 0.5
    squares = [error for row in grid.rows for error in row if error >= 0]
    assert squares[-1] == 0.5
    assert len(squares) == -(-size // grid.square)


def test_levels_follow_the_logarithm() -> None:
    assert [heatmap.level(e, 4) for e in (1e-30, 1e-8, 1e-5, 1e-3, 0.9, 1.0)] == [0, 0, 1, 2, 3, 3]


def test_the_report_fits_its_width() -> None:
    for width in (40, 58, 72, 100):
        found = text(validation_text.report(failing(), selected=0, width=width))
        assert max(len(line) for line in found.splitlines()[:1] + found.splitlines()[5:]) <= max(width, 56)
    assert "no verdict yet" in text(validation_text.report({}, selected=0, width=60))


def test_times_over_attempts_and_equal_samples() -> None:
    model = Model()
    for number, median in ((1, 7180.0), (2, 6315.0), (3, 2390.0)):
        outcome = "failed" if number == 3 else "passed"
        more = {"validation": failing()} if number == 3 else {}
        model.put(Iteration(number, Path(), record(number, median, outcome, **more)), (number, 0))
    assert model.best
    assert model.best.number == 2
    rows = [model.rows[n] for n in model.numbers]
    drawn = text(timing_text.over_attempts(rows, model.best, 3, 60, 9)).splitlines()
    assert len(drawn) == 10
    assert "●" in drawn[0]
    assert "★" in drawn[2] or "★" in drawn[1]
    assert "✗" in drawn[8]
    assert drawn[9].split() == ["1", "2", "3"]
    same = timing_text.distribution({"baseline_ns": [7180.0] * 2, "variant_ns": [7180.0] * 2}, 60)
    assert text(same).count("█") == 6
    assert timing_text.distribution({}, 60) == []
    report = text(timing_text.report(rows, rows[2], record(3, 2390.0), model.best, 60, 40))
    assert "does not count: FAIL" in report
    assert "compile   0.21 s" in report
    assert "one comparison" not in report


def test_records_of_any_kind_are_rows() -> None:
    for document in (
        {"outcome": "error"},
        {"outcome": "passed", "timing": None, "validation": [], "seconds": 3},
        {"outcome": "passed", "timing": {"variant_median_ns": "x", "variant_ci95_ns": [1]}},
    ):
        row = row_of(Iteration(1, Path(), {"schema": "x", **document}))
        assert not row.passed
        assert row.median_ns is None


def test_text_of_programs_is_made_harmless() -> None:
    assert clean("a\tb\x1b[31mc\x00d\r\n") == "a       bc�d "
    assert wrap("one two  three", 7) == ["one two", "three"]
    assert wrap("abcdefgh", 3) == ["abc", "def", "gh"]
