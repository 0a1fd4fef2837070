"""Keys that come in one piece, as over a slow link, go where they are meant."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from textual import events
from textual.keys import key_to_character

from tui.stage import Stage, stage


async def at_once(st: Stage, *keys: str) -> None:
    """All keys are there before the first is looked at."""
    for key in keys:
        st.app.post_message(events.Key(key, key_to_character(key) if len(key) > 1 else key))
    await st.settle()


def running(st: Stage) -> None:
    st.program.session = SimpleNamespace(directory=Path("/nowhere/session"))


async def test_the_extract_dialog_filled_in_without_a_pause() -> None:
    async with stage() as st:
        await st.show()
        running(st)
        # From the ranking: the next dispatch with a grid of 77 work-items.
        await at_once(st, "e", "tab", "7", "7", "enter")
        await st.until_true(lambda: st.extractions)
        assert st.extractions[0].wanted.grid == (77, 1, 1)
        assert st.extractions[0].wanted.dispatch == 0


async def test_a_choice_that_enables_the_next_field() -> None:
    async with stage() as st:
        await st.show()
        running(st)
        await at_once(st, "e", "right", "tab", "backspace", "9", "9", "enter")
        await st.until_true(lambda: st.extractions)
        assert st.extractions[0].wanted.dispatch == 99


async def test_a_filter_then_a_key_of_the_ranking() -> None:
    async with stage() as st:
        await st.show()
        await at_once(st, "slash", *"rms", "enter", "f", "slash", "backspace", "enter", "space")
        await st.until_true(lambda: st.leaderboard.table.filter.text == "rm")
        assert st.leaderboard.table.marked
        assert st.leaderboard.table.frozen


async def test_a_question_answered_before_it_is_drawn(own_home: Path) -> None:
    async with stage() as st:
        await st.show()
        await at_once(st, "s", *["backspace"] * 40, *"a.csv", "enter")
        await st.until_true(lambda: (own_home / "a.csv").exists())
        await at_once(st, "question_mark", "escape", "p")
        await st.until_true(lambda: st.leaderboard.heading.paused)
