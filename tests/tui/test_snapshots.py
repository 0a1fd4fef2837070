"""What screens look like, as SVG: a picture that differs is shown beside the one that was expected.

KERNCAP_UPDATE_SNAPSHOTS=1 takes what is drawn now for right: look at it before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kerncap.tui.settings import Settings
from tui.stage import Stage, five, kernel, stage
from tui.workbench.svg_cells import differences

FOLDER = Path(__file__).parent / "snapshots"
SIZES = [(80, 24), (120, 40), (200, 50)]


def check(st: Stage, name: str, own_home: Path) -> None:
    drawn = st.app.export_screenshot(title="kerncap")
    expected = FOLDER / f"{name}.svg"
    if os.environ.get("KERNCAP_UPDATE_SNAPSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        expected.write_text(drawn)
    if not expected.exists() or differences(drawn, expected.read_text()):
        actual = own_home / f"{name}.svg"
        actual.write_text(drawn)
        pytest.fail(f"{name}: {actual} differs from {expected}; the screen:\n{st.text()}")


async def filled(st: Stage) -> None:
    """Figures of some seconds, so that trends are there."""
    for second in range(1, 9):
        kernels = [*five(second), *(kernel(i, f"kernel_{i}", calls=second * i) for i in range(6, 30))]
        await st.show(*kernels, elapsed_s=float(second))
    st.program.prints("decoder of 6 layers, 512 wide", "tokens: 185 185 886 [/] [b]")
    await st.press("down", "space")


@pytest.mark.parametrize("size", SIZES)
async def test_leaderboard(size: tuple[int, int], own_home: Path) -> None:
    async with stage(size) as st:
        await filled(st)
        check(st, f"leaderboard-{size[0]}x{size[1]}", own_home)


async def test_leaderboard_without_colours(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage((80, 24)) as st:
        await filled(st)
        check(st, "leaderboard-no-color", own_home)


async def test_leaderboard_in_the_light_theme(own_home: Path) -> None:
    async with stage((80, 24), settings=Settings(theme="kerncap-light")) as st:
        await filled(st)
        check(st, "leaderboard-light", own_home)


async def test_extract(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kerncap.core.loop.captures.free_bytes", lambda path: 123_400_000_000)
    async with stage((80, 24)) as st:
        await filled(st)
        await st.press("e")
        check(st, "extract-80x24", own_home)
