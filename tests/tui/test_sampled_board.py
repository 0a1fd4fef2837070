"""The ranking of a program that times only a sample of its dispatches."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from tui.stage import kernel, stage

HOT = {"calls": 100_007, "timed": 12_004, "total_ns": 100_007 * 9000, "estimated": True}


async def test_estimated_totals_are_marked_and_ranked(own_home: Path) -> None:
    hot = kernel(0, "hot", mean_ns=9000, **HOT)
    cold = kernel(1, "cold", calls=10, mean_ns=4000)
    async with stage() as st:
        await st.show(cold, hot, dispatches=100_017, timed=12_014, sampling=True)
        lines = st.text().splitlines()
        row = next(i for i, line in enumerate(lines) if " hot " in line)
        assert "~900.1 ms   100007  9.000 us" in lines[row]
        assert "40.00 us" in lines[row + 1]
        assert "~" not in lines[row + 1]
        assert "100017 dispatches, 12014 timed, sampled" in st.text()
        assert "12,004 of 100,007 timed: total estimated from their mean, 900.1 ms" in st.text()
        await st.press("down")
        assert "10, 10 of them timed" in st.text()
        await st.press("home", "e")
        assert "slowest timed (27.00 us)" in st.text()


async def test_what_is_saved_says_it_too(own_home: Path) -> None:
    async with stage() as st:
        await st.show(kernel(0, "hot", mean_ns=9000, **HOT), kernel(1, "cold"), sampling=True)
        for name in ("a.json", "a.csv"):
            await st.press("s", *["backspace"] * 40, *name, "enter")
        await st.until_true(lambda: (own_home / "a.csv").exists())
        document = json.loads((own_home / "a.json").read_text())
        assert document["sampling"] is True
        hot = document["kernels"][0]
        assert (hot["estimated"], hot["timed"], hot["total_ns"]) == (True, 12_004, 900_063_000)
        assert hot["percent"] > 99.9
        rows = list(csv.DictReader((own_home / "a.csv").open()))
        assert [(row["name"], row["estimated"]) for row in rows] == [("hot", "True"), ("cold", "False")]


async def test_an_estimate_that_falls_is_no_trend_downwards() -> None:
    async with stage() as st:
        for second, total in enumerate((9_000_000, 8_000_000, 10_000_000)):
            hot = kernel(0, "hot", calls=1000, timed=10, total_ns=total, estimated=True)
            await st.show(hot, elapsed_s=float(second), sampling=True)
        assert list(st.leaderboard.table.trends.of(hot.id))[-2:] == [0, 2_000_000]
