"""The detail pane: nothing of it is cut off, and it has the rows that the ranking does not need."""

from __future__ import annotations

import numpy as np
import pytest

from kerncap.tui.leaderboard.detail import DetailPane
from kerncap.tui.services.source_sites import Found
from tui.stage import Stage, five, kernel, stage

SIZES = [(80, 24), (100, 30), (120, 40)]
NOTE = "2 files define this name, not proven to be what runs; extraction asks the compiler"
NAME = "void red::block_sum<float, 128>(float const*, float*, int)"


def spread(bins: int):
    """A kernel whose dispatches took times of many kinds."""
    histogram = np.zeros(64, np.uint32)
    histogram[10 : 10 + bins] = range(1, bins + 1)
    return kernel(0, NAME, calls=int(histogram.sum()), mean_ns=9000, histogram=histogram)


async def shown(st: Stage, *kernels: object) -> DetailPane:
    await st.show(*kernels)  # type: ignore[arg-type]
    pane = st.leaderboard.query_one(DetailPane)
    if not pane.display:
        await st.press("d")
    st.leaderboard.table.select(kernels[0].id)  # type: ignore[attr-defined]
    st.leaderboard._sources[kernels[0].id] = Found(note=NOTE)  # type: ignore[attr-defined]
    st.leaderboard._show_detail()
    await st.settle()
    return pane


@pytest.mark.parametrize("size", [*SIZES, (200, 50)])
@pytest.mark.parametrize("count", [1, 40])
async def test_nothing_is_cut_off_at_the_side(size: tuple[int, int], count: int) -> None:
    async with stage(size) as st:
        pane = await shown(st, spread(8), *(kernel(i, f"kernel_{i}") for i in range(1, count)))
        room = pane.scrollable_content_region.width
        for line in pane.lines:
            assert len("".join(str(piece[0]) for piece in line).rstrip()) <= room, line
        if size[0] < 160:
            text = " ".join(pane.text.split())
            assert NOTE in text


@pytest.mark.parametrize("size", SIZES)
async def test_it_has_the_rows_that_the_ranking_does_not_need(size: tuple[int, int]) -> None:
    async with stage(size) as st:
        pane = await shown(st, spread(3))
        assert pane.size.height >= len(pane.lines)
        text = st.text()
        assert text.count("█") >= 3
        assert "more below" not in text


@pytest.mark.parametrize("size", SIZES)
async def test_where_there_is_no_room_it_says_how_to_scroll(size: tuple[int, int]) -> None:
    async with stage(size) as st:
        pane = await shown(st, spread(12), *(kernel(i, f"kernel_{i}") for i in range(1, 60)))
        assert pane.size.height < len(pane.lines)
        assert "more below: tab to here, then ↑ ↓" in st.text()
        assert st.leaderboard.table.size.height >= size[1] // 3
        await st.press("tab")
        if not pane.has_focus:  # the program's output comes first
            await st.press("tab")
        await st.press("end")
        last = "".join(str(piece[0]) for piece in pane.lines[-1]).strip()
        assert last in st.text()


async def test_the_ranking_takes_its_rows_back() -> None:
    async with stage((120, 40)) as st:
        pane = await shown(st, spread(12))
        high = pane.size.height
        assert high >= len(pane.lines)
        await shown(st, spread(12), *(kernel(i, f"kernel_{i}") for i in range(1, 30)))
        assert pane.size.height < high


async def test_another_size_of_the_terminal_is_another_height() -> None:
    async with stage((120, 40)) as st:
        pane = await shown(st, spread(12))
        st.program.ends()
        for width, height in ((100, 30), (120, 40), (200, 50), (100, 24)):
            await st.pilot.resize_terminal(width, height)
            await st.settle()
            table = st.leaderboard.table
            if width < 160:
                assert table.size.height >= 2, (width, height)
                assert pane.size.height == 0 or table.size.height + pane.size.height < height - 4
            assert "block_sum" in st.text()


async def test_it_does_not_jump_with_the_cursor() -> None:
    async with stage((120, 40)) as st:
        others = five()[1:]
        pane = await shown(st, spread(9), *others)
        high = pane.size.height
        st.leaderboard.table.select(others[0].id)
        await st.settle()
        assert pane.size.height == high
