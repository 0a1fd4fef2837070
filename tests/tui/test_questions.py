"""Questions and hints: enter is the answer that stands out, and what is said fits what is on the screen."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from kerncap.tui.settings import Remembered
from kerncap.tui.widgets.confirm import Confirm
from tui.stage import Stage, five, kernel, stage


def cut_off() -> None:
    memory = Remembered()
    memory.set("resume.command", ["./decode", "--tokens", "16"])
    seen = {"command": ["./decode", "--tokens", "16"], "running": True, "directory": os.getcwd()}
    memory.set("resume.cut_off", seen)


def colours(st: Stage, name: str) -> tuple[object, object, bool]:
    """Of a button as drawn: foreground, background, reversed."""
    (segment,) = (
        segment
        for strip in st.app.screen._compositor.render_strips()
        for segment in strip
        if f"({name[0]})" in segment.text
    )
    style = segment.style
    assert style is not None
    return style.color, style.bgcolor, bool(style.reverse)


@pytest.mark.parametrize("plain", [False, True])
async def test_enter_goes_on_where_a_session_was_cut_off(
    plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plain:
        monkeypatch.setenv("NO_COLOR", "1")
    cut_off()
    async with stage(command=None) as st:
        await st.until("Run it again?")
        chosen, other = colours(st, "yes"), colours(st, "no")
        assert chosen != other
        await st.press("right")
        assert (colours(st, "yes"), colours(st, "no")) == (other, chosen)
        await st.press("left", "enter")
        assert st.programs[0].command.arguments == ("./decode", "--tokens", "16")


async def test_no_and_escape_start_nothing() -> None:
    for key in ("n", "escape"):
        cut_off()
        async with stage(command=None) as st:
            await st.until("Run it again?")
            await st.press(key)
            assert not st.programs
            assert st.screen is st.leaderboard


async def test_enter_deletes_nothing() -> None:
    async with stage() as st:
        answers: list[object] = []
        st.app.push_screen(Confirm("Delete it?", "Delete", "Keep"), answers.append)
        await st.settle()
        assert colours(st, "no") != colours(st, "yes")
        await st.press("enter")
        assert answers == [False]


async def test_no_hint_stands_under_an_open_dialog() -> None:
    async with stage(guided=True) as st:
        await st.show()
        assert "Kernels by device time" in st.text()
        await st.press("e")
        await st.show()  # figures come on
        assert "Kernels by device time" not in st.text()
        await st.press("escape")
        assert "Kernels by device time" in st.text()


async def test_at_80_columns_nothing_is_cut_in_a_word() -> None:
    async with stage((80, 24)) as st:
        slow = kernel(0, calls=123456, slowest_dispatch=123456, mean_ns=7180)
        await st.show(slow, *five()[1:], elapsed_s=4000.0, own_ns=61_200_000_000, processes=3)
        head = st.text().splitlines()[1]
        words = " ".join(head.split())
        assert words == "sim:gfx942 1:06:40 123496 dispatches 5 kernels cost 1.53% simulated time"
        await st.press("slash", *"mul_mat_vec_q<", "left_parenthesis")
        assert "terminated subpattern at position 14." in " ".join(st.text().split())
        await st.press("backspace")
        assert "no regular expression" not in st.text()
        await st.press("escape")
        st.program.session = SimpleNamespace(directory=Path("/nowhere/session"))
        await st.press("e")
        assert "slowest (#123456, 21.54 us)" in st.text()


@pytest.mark.parametrize("width", [200, 140, 120, 100, 80, 60, 40])
async def test_the_header_is_of_whole_words_at_any_width(width: int) -> None:
    async with stage((width, 24)) as st:
        await st.show(*five(), processes=2, timed=40)
        await st.press("space")
        head = st.text().splitlines()[1]
        assert "…" not in head
        assert head.split()[:3] == ["sim:gfx942", "1.0", "s"]
        assert "1 marked" in head
